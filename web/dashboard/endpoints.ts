// Where callbacks go, and how they fared there.

import { ask, get, named, type Page, post, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import type { PageProps } from "./pages.ts";
import { Card, Code, Empty, Facts, Read, When } from "./parts.ts";
import { go, linkTo, refilter } from "./route.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Pager, Table } from "./table.ts";
import { count, duration, exact } from "./words.ts";

type Endpoint = {
  id: string;
  url?: string;
  events?: string[];
  policy: string;
  state: string;
  reason?: string;
  description?: string;
  publicKey: string;
  createdAt: string;
  lastSuccessAt?: string;
  failingSince?: string;
};
type Try = {
  number: number;
  endedAt: string;
  outcome?: string;
  error?: string;
  latencyMs?: number;
  answer?: { status: number };
};
type Delivery = { id: string; webhookId: string; type: string; status: string; createdAt: string; tries: Try[] };
type Tested = { delivered: boolean; latencyMs: number; status?: number; body?: string; error?: string };
type Requeued = { matched: number; requeued: number; nextCursor: string | null };

const EVERY_MS = 15_000;
const stateOf = ({ state, failingSince }: Endpoint): VNode =>
  failingSince !== undefined && state === "active"
    ? html`<${Status} is="failing" tone="warn" />`
    : html`<${Status} is=${state} />`;

export function Endpoints({ place }: PageProps): VNode {
  const [id] = place.rest;
  return id === undefined ? html`<${List} />` : html`<${One} key=${id} id=${id} place=${place} />`;
}

function List(): VNode {
  const list = useLive("endpoints", (signal) => get<{ data: Endpoint[] }>("/v1/endpoints", signal), EVERY_MS);
  return html`<h1>Endpoints</h1><p class="lead">Where your application hears what became of its notifications, signed after Standard Webhooks.</p>
    <${Card}><${Read} of=${list}>${({ data }: { data: Endpoint[] }) =>
      data.length === 0
        ? html`<${Empty} title="No endpoints yet">Make one with <code>POST /v1/endpoints</code>: a URL, and which events it is to hear of.<//>`
        : html`<${Table} label="Endpoints" items=${data} columns=${COLUMNS} keyOf=${(one: Endpoint) => one.id} />`}<//><//>`;
}

const COLUMNS: Column<Endpoint>[] = [
  {
    title: "Endpoint",
    isLong: true,
    cell: ({ id, url }) => html`<a href=${linkTo("endpoints", [id])}>${url ?? id}</a>`,
  },
  { title: "State", cell: stateOf },
  { title: "Hears of", isLong: true, cell: ({ events }) => events?.join(", ") ?? "everything" },
  { title: "Policy", cell: ({ policy }) => policy },
  { title: "Last success", isNumber: true, cell: ({ lastSuccessAt }) => html`<${When} at=${lastSuccessAt} />` },
];

function One({ id, place }: PageProps & { id: string }): VNode {
  const path = `/v1/endpoints/${named(id)}`;
  const endpoint = useLive(path, (signal) => get<Endpoint>(path, signal), EVERY_MS);
  const cursor = place.query.get("cursor");
  const listed = withQuery(`${path}/deliveries`, { cursor });
  const deliveries = useLive(listed, (signal) => get<Page<Delivery>>(listed, signal), EVERY_MS);
  return html`<p><a href=${linkTo("endpoints")}>Endpoints</a></p>
    <${Read} of=${endpoint}>${(one: Endpoint) => html`
      <div class="heading"><h1 class="title">${one.url ?? id}</h1>${stateOf(one)}<${Actions} endpoint=${one} path=${path} reload=${endpoint.reload} /></div>
      <${Card}><${Facts} of=${[
        ["Id", html`<code>${id}</code>`],
        ["Hears of", one.events?.join(", ") ?? "everything"],
        ["Policy", one.policy],
        one.description !== undefined && ["Description", one.description],
        one.reason !== undefined && ["Why", one.reason],
        ["Public key", html`<code>${one.publicKey}</code>`],
        ["Last success", html`<${When} at=${one.lastSuccessAt} />`],
        one.failingSince !== undefined && ["Failing since", exact(one.failingSince)],
      ]} /><//>`}<//>
    <${Card} title="Deliveries"><${Read} of=${deliveries}>${(page: Page<Delivery>) => html`
      ${page.data.length === 0 ? html`<${Empty} title="Nothing was delivered yet">Try it with Test, or send a notification.<//>` : html`<${Table} label="Deliveries" items=${page.data} columns=${DELIVERIES} keyOf=${(one: Delivery) => one.id} />`}
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("endpoints", [id], { cursor: next }))} onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}

const DELIVERIES: Column<Delivery>[] = [
  { title: "Event", cell: ({ type }) => type },
  { title: "Status", cell: ({ status }) => html`<${Status} is=${status} />` },
  { title: "Tries", isNumber: true, cell: ({ tries }) => tries.length },
  {
    title: "The receiver said",
    isLong: true,
    cell: ({ tries }) => {
      const last = tries.at(-1);
      return last === undefined
        ? "–"
        : [last.answer?.status, last.error ?? last.outcome, last.latencyMs !== undefined && duration(last.latencyMs)]
            .filter(Boolean)
            .join(" · ");
    },
  },
  { title: "Made", isNumber: true, cell: ({ createdAt }) => html`<${When} at=${createdAt} />` },
];

function Actions({ endpoint, path, reload }: { endpoint: Endpoint; path: string; reload: () => void }): VNode | null {
  if (!useMay("admin")) return null;
  const { id, url, state } = endpoint;
  const name = url ?? id;
  const isOn = state === "active";
  return html`<div class="actions">
    ${url !== undefined && html`<button type="button" onClick=${() => test(path, name)}>Test</button>`}
    <button type="button" onClick=${() => (isOn ? pause(path, name, reload) : resume(path, name, reload))}>${isOn ? "Pause" : "Resume"}</button>
    <button type="button" onClick=${() => void requeue(id)}>Send failed ones again</button>
    ${url !== undefined && html`<button type="button" onClick=${() => rotate(path, name, reload)}>Rotate secret</button>`}
    ${url !== undefined && html`<button type="button" onClick=${() => remove(path, name)}>Delete</button>`}
  </div>`;
}

const test = (path: string, name: string): void =>
  confirm({
    title: "Post a test there?",
    text: `1 event of the type endpoint.test is posted to ${name} now.`,
    verb: "Test",
    act: async () => {
      const { delivered, latencyMs, status, error, body } = await post<Tested>(`${path}/test`, {});
      const said = [status !== undefined && `It answered ${status}`, error, duration(latencyMs)]
        .filter(Boolean)
        .join(" · ");
      return {
        title: delivered ? "The receiver took it" : "The receiver did not take it",
        show: html`<p class="confirm-text">${said}</p>${body && html`<${Code} label="Answer" of=${body} />`}`,
      };
    },
  });

const pause = (path: string, name: string, reload: () => void): void =>
  confirm({
    title: "Pause it?",
    text: `Nothing more is sent to 1 endpoint, ${name}. What happens meanwhile waits.`,
    verb: "Pause",
    needsReason: true,
    act: async (reason) => {
      await post(`${path}/pause`, { reason });
      reload();
      return "1 endpoint is paused";
    },
  });

const resume = (path: string, name: string, reload: () => void): void =>
  confirm({
    title: "Go on with it?",
    text: `1 endpoint, ${name}, hears again what happens.`,
    verb: "Resume",
    act: async () => {
      await post(`${path}/resume`);
      reload();
      return "1 endpoint goes on";
    },
  });

const rotate = (path: string, name: string, reload: () => void): void =>
  confirm({
    title: "Sign with a new secret?",
    text: `1 endpoint, ${name}: the secret of now signs beside the new one for a day.`,
    verb: "Rotate",
    act: async () => {
      const { secret } = await post<{ secret: string }>(`${path}/rotate`, {});
      reload();
      return {
        title: "The new secret",
        show: html`<p class="confirm-text">It is shown only this once.</p><${Code} label="Secret" of=${secret} />`,
      };
    },
  });

const remove = (path: string, name: string): void =>
  confirm({
    title: "Delete it?",
    text: `1 endpoint, ${name}. What still waits for it ends as dead letters.`,
    verb: "Delete",
    isDangerous: true,
    act: async () => {
      await ask("DELETE", path);
      go(linkTo("endpoints"));
      return "1 endpoint was deleted";
    },
  });

/** Counted first, so that the question says how many. */
async function requeue(endpoint: string): Promise<void> {
  const body = { filter: { endpoint }, limit: 1_000 };
  const { matched, nextCursor } = await post<Requeued>("/v1/callback-dead-letters/requeue", { ...body, dryRun: true });
  const found = `${count(matched)}${nextCursor === null ? "" : "+"} callbacks`;
  confirm({
    title: "Send failed callbacks again?",
    text: `${found} failed for good at this endpoint. At most 1,000 go at once.`,
    verb: matched === 1 ? "Send 1 again" : `Send ${count(Math.min(matched, 1_000))} again`,
    act: async () => {
      const { requeued } = await post<Requeued>("/v1/callback-dead-letters/requeue", body);
      return `${count(requeued)} callbacks are on their way again`;
    },
  });
}
