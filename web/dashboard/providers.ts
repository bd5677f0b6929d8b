// Who carries what, and how they are.

import { get, named, post } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import type { Pause } from "./overview.ts";
import { Card, Empty, Facts, Read, When } from "./parts.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { compact, count, duration, many, money } from "./words.ts";

type Use = { per: string; most: number; burst: number; room?: number; waitMs?: number };
type Breaker = { state: string; openMs?: number; pausedMs?: number; reason?: string };
export type Provider = {
  name: string;
  type: string;
  channels: string[];
  routes: string[];
  own: boolean;
  health?: { healthy: boolean; detail: string };
  breaker: Breaker;
  paused?: Pause;
  receivers?: ({ origin: string } & Breaker)[];
  limits: { account: Use[]; recipient: Use[] };
  spend: { since: string; sent: number; cost: number };
};
type Latency = { provider: string | null; latencyMs: { p50: number; p99: number } | null };
type Listed = { data: Provider[]; limits: { tenant: Use[]; recipient: Use[] } };

const EVERY_MS = 10_000;

export function Providers(): VNode {
  const hour = useLive(
    "latency",
    (signal) => get<{ data: Latency[] }>("/v1/statistics?by=provider", signal),
    3 * EVERY_MS,
  );
  const latencyOf = (name: string) =>
    hour.value?.data.find(({ provider }) => provider === name)?.latencyMs ?? undefined;
  const list = useLive("providers", (signal) => get<Listed>("/v1/providers", signal), EVERY_MS);
  return html`<h1>Providers</h1><p class="lead">Who carries what: their health, their breakers, and what their limits leave room for.</p>
    <${Read} of=${list}>${({ data }: Listed) =>
      data.length === 0
        ? html`<${Card}><${Empty} title="No providers">Name some in the configuration, or keep an account of your own with <code>PUT /v1/providers/:name</code>.<//><//>`
        : html`<div class="columns">${data.map((provider) => html`<${One} key=${provider.name} provider=${provider} latency=${latencyOf(provider.name)} reload=${list.reload} />`)}</div>`}<//>`;
}

function One({
  provider,
  latency,
  reload,
}: {
  provider: Provider;
  latency?: Latency["latencyMs"];
  reload: () => void;
}): VNode {
  const { name, type, routes, channels, own, health, breaker, paused, receivers = [], limits, spend } = provider;
  const isHealthy = health?.healthy ?? true;
  const aside = html`<span class="line">${paused && html`<${Status} is="paused" />`}<${Status} is=${breaker.state}>${`breaker ${breaker.state}`}<//></span>`;
  return html`<${Card} title=${name} aside=${aside}>
    <${Facts} of=${[
      ["Type", `${type}${own ? ", your own account" : ""}`],
      ["Carries", (routes.length > 0 ? routes : channels).join(", ")],
      [
        "Health",
        health ? html`<${Status} is=${isHealthy ? "healthy" : "unhealthy"} /> ${health.detail}` : "nothing to check",
      ],
      latency && ["Took, in the last hour", `${duration(latency.p50)}, 99 % within ${duration(latency.p99)}`],
      ["Sent in 30 days", `${compact(spend.sent)} · ${money(spend.cost)}`],
      ...limits.account.map((use): [string, string] => [`Limit per ${use.per}`, wordsOf(use)]),
      breaker.reason !== undefined && ["Why the breaker is not closed", breaker.reason],
      breaker.openMs !== undefined && ["Asked again in", duration(breaker.openMs)],
      paused !== undefined && ["Paused", html`${paused.reason} (<${When} at=${paused.pausedAt} />)`],
    ]} />
    ${receivers.length > 0 && html`<h3>${many(receivers.length, "server")} in trouble</h3><ul class="plain-list">${receivers.map(({ origin, state, reason }) => html`<li><${Status} is=${state} /> ${origin} <span class="soft">${reason}</span></li>`)}</ul>`}
    <${Actions} provider=${provider} reload=${reload} />
  <//>`;
}

const wordsOf = ({ most, room, waitMs }: Use): string =>
  `${count(most)}${room === undefined ? "" : `, room for ${count(room)} now`}${waitMs ? `, the last waits ${duration(waitMs)}` : ""}`;

function Actions({ provider: { name, paused }, reload }: { provider: Provider; reload: () => void }): VNode | null {
  if (!useMay("admin")) return null;
  const path = `/v1/providers/${named(name)}`;
  const test = () =>
    confirm({
      title: `Ask ${name}?`,
      text: "Whether 1 provider can be reached with its credentials. Nothing is sent.",
      verb: "Test",
      act: async () => {
        const { healthy, detail } = await post<{ healthy: boolean; detail: string }>(`${path}/test`);
        reload();
        return {
          title: healthy ? `${name} is well` : `${name} is not well`,
          show: html`<p class="confirm-text">${detail}</p>`,
        };
      },
    });
  const pause = () =>
    confirm({
      title: `Pause ${name}?`,
      text: "1 provider is passed over from now on. What only it could carry waits, and spends no attempt.",
      verb: "Pause",
      needsReason: true,
      act: async (reason) => {
        await post(`${path}/pause`, { reason });
        reload();
        return `${name} is paused`;
      },
    });
  const resume = () =>
    confirm({
      title: `Go on with ${name}?`,
      text: "1 provider is used again, at once and in order.",
      verb: "Resume",
      act: async () => {
        await post(`${path}/resume`);
        reload();
        return `${name} goes on`;
      },
    });
  return html`<div class="actions card-actions"><button type="button" class="small" onClick=${test}>Test<span class="hidden"> ${name}</span></button>
    ${paused ? html`<button type="button" class="small" onClick=${resume}>Resume<span class="hidden"> ${name}</span></button>` : html`<button type="button" class="small" onClick=${pause}>Pause<span class="hidden"> ${name}</span></button>`}</div>`;
}
