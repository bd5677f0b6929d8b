// Dead letters sent again, or taken off the list, as a plan: counted first, looked over, begun with a few, and stopped at any time.

import { get, type Page, post, withQuery } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { type Live, useLive } from "./live.ts";
import type { PageProps } from "./pages.ts";
import { Card, Empty, Facts, Read, When } from "./parts.ts";
import { go, linkTo, refilter } from "./route.ts";
import { may, useMay, useWho } from "./session.ts";
import { Status } from "./status.ts";
import { type Column, Pager, Table } from "./table.ts";
import { count, duration, many, money, percent } from "./words.ts";

type Reasons = { [reason: string]: number };
export type Plan = {
  planId: string;
  kind: keyof typeof KINDS;
  state: string;
  filter?: { [name: string]: string };
  madeBy: string;
  createdAt: string;
  count: number;
  truncated: boolean;
  looked: number;
  excluded: Reasons;
  estimate: { cost: number; unpriced: number; seconds: number; rate: number };
  progress: { done: number; skipped: Reasons; remaining: number };
  canary?: { done: number; standing: Reasons };
  error?: string;
};

const SOON_MS = 1_500;
const LATER_MS = 15_000;
const CANARIES = 10;
const UNDER_WAY = ["counting", "applying", "waiting"];
const REASONS: Reasons | { [reason: string]: string } = {
  ...{ gone: "no longer kept", waiting: "waits to be sent", sent: "was sent since", ended: "ended otherwise" },
  ...{
    purged: "taken off before",
    changed: "has failed again since",
    restored: "from the archive",
    forgotten: "its user was forgotten",
  },
  ...{
    expired: "its time has passed",
    reached: "the user was reached by a later one",
    suppressed: "nothing is sent to its address",
  },
};

const KINDS = {
  requeue: "send again",
  purge: "take off the list",
  retry: "send again at once",
  "callback-retry": "send callbacks again at once",
};
const whatOf = ({ kind }: Plan): string => `${KINDS[kind].charAt(0).toUpperCase()}${KINDS[kind].slice(1)}`;
const howMany = (reasons: Reasons): number => Object.values(reasons).reduce((sum, n) => sum + n, 0);

export function Plans({ place }: PageProps): VNode {
  const [id] = place.rest;
  return id === undefined ? html`<${List} place=${place} />` : html`<${One} key=${id} id=${id} />`;
}

function List({ place }: PageProps): VNode {
  const cursor = place.query.get("cursor");
  const path = withQuery("/v1/plans", { cursor });
  const list = useLive(path, (signal) => get<Page<Plan>>(path, signal), LATER_MS);
  return html`<h1>Plans</h1><p class="lead">Dead letters sent again or purged, as was counted and looked over before.</p>
    <${Card}><${Read} of=${list}>${(page: Page<Plan>) => html`
      ${
        page.data.length === 0
          ? html`<${Empty} title="No plans yet">Make one from the <a href=${linkTo("dead-letters")}>dead letters</a>.<//>`
          : html`<${Table} label="Plans" items=${page.data} columns=${COLUMNS} keyOf=${(one: Plan) => one.planId} />`
      }
      <${Pager} page=${page} isFirst=${cursor === null} onNext=${(next: string) => go(linkTo("plans", [], { cursor: next }))} onFirst=${() => refilter(place, { cursor: undefined })} />`}<//><//>`;
}

const COLUMNS: Column<Plan>[] = [
  {
    title: "Plan",
    isLong: true,
    cell: (plan) => html`<a href=${linkTo("plans", [plan.planId])}>${whatOf(plan)}${filterWords(plan)}</a>`,
  },
  { title: "State", cell: ({ state }) => html`<${Status} is=${state} />` },
  { title: "For", isNumber: true, cell: ({ count: all }) => count(all) },
  { title: "Done", isNumber: true, cell: ({ progress }) => count(progress.done) },
  { title: "Made", isNumber: true, cell: ({ createdAt }) => html`<${When} at=${createdAt} />` },
];

function filterWords({ filter }: Plan): string {
  const words = Object.entries(filter ?? {}).map(([name, value]) => `${name} ${value}`);
  return words.length > 0 ? `: ${words.join(", ")}` : "";
}

function One({ id }: { id: string }): VNode {
  const path = `/v1/plans/${encodeURIComponent(id)}`;
  const plan = useLive(path, (signal) => get<Plan>(path, signal), LATER_MS);
  const isUnderWay = plan.value !== undefined && UNDER_WAY.includes(plan.value.state);
  useLive(isUnderWay ? `${path} soon` : "", async () => isUnderWay && plan.reload(), isUnderWay ? SOON_MS : undefined);
  return html`<p><a href=${linkTo("plans")}>Plans</a></p><${Read} of=${plan}>${(one: Plan) => html`<${Shown} plan=${one} path=${path} live=${plan} />`}<//>`;
}

function Shown({ plan, path, live }: { plan: Plan; path: string; live: Live<Plan> }): VNode {
  const { state, count: all, truncated, looked, excluded, estimate, progress, canary, madeBy, createdAt, error } = plan;
  const over = progress.done + howMany(progress.skipped);
  return html`<div class="heading"><h1 class="title">${whatOf(plan)}${filterWords(plan)}</h1><${Status} is=${state} /><${Actions} plan=${plan} path=${path} live=${live} /></div>
    <${Card} title="What it is for"><${Facts} of=${[
      ["Notifications", `${count(all)}${truncated ? "+" : ""}`],
      ["Looked at", count(looked)],
      [
        "Cost, by estimate",
        `${money(estimate.cost)}${estimate.unpriced > 0 ? `, ${count(estimate.unpriced)} unpriced` : ""}`,
      ],
      ["Takes", `${duration(estimate.seconds * 1000)} at ${count(estimate.rate)} a second`],
      ["Made", html`by ${madeBy}, <${When} at=${createdAt} />`],
      error !== undefined && ["Last error", error],
    ]} /><${Tally} title="Left out" of=${excluded} /><//>
    <${Card} title="Progress" aside=${html`<span class="soft">${percent(over, all)}</span>`}>
      <progress max=${Math.max(all, 1)} value=${over} aria-label="Progress"></progress>
      <${Facts} of=${[["Done", count(progress.done)], ["Remaining", count(progress.remaining)]]} />
      <${Tally} title="Passed over" of=${progress.skipped} />
      ${canary && html`<h3>The first ${count(canary.done)}</h3><${Facts} of=${Object.entries(canary.standing).map(([status, n]) => [status, count(n)])} />`}<//>`;
}

function Tally({ title, of }: { title: string; of: Reasons }): VNode | null {
  const reasons = Object.entries(of);
  if (reasons.length === 0) return null;
  return html`<h3>${title}</h3><${Facts} of=${reasons.map(([reason, n]) => [REASONS[reason] ?? reason, count(n)])} />`;
}

function Actions({ plan, path, live }: { plan: Plan; path: string; live: Live<Plan> }): VNode | null {
  const who = useWho();
  if (!may(who, plan.kind === "purge" || plan.kind === "callback-retry" ? "admin" : "send")) return null;
  const { state } = plan;
  const ask = (verb: string, text: string, step: string, told: string, body?: object) =>
    confirm({
      title: `${verb}?`,
      text,
      verb,
      isDangerous: plan.kind === "purge" || step === "abort",
      act: async () => {
        await post(`${path}/${step}`, body);
        live.reload();
        return told;
      },
    });
  const what = plan.kind === "purge" ? "are taken off the list" : "are sent again";
  const remaining = many(plan.progress.remaining, "notification");
  const first = Math.min(CANARIES, plan.count);
  return html`<div class="actions">
    ${
      state === "ready" &&
      plan.count > 0 &&
      html`<button type="button" class="primary" onClick=${() => ask(`Try ${count(first)} first`, `${many(first, "notification")} of ${count(plan.count)} ${what} now. Then the plan waits for your word.`, "apply", `${many(first, "notification")} first`, { canary: first })}>Try ${count(first)} first</button>
      <button type="button" onClick=${() => ask("Apply to all", `${many(plan.count, "notification")} ${what}, at most ${count(plan.estimate.rate)} a second.`, "apply", "The plan is under way")}>Apply to all</button>`
    }
    ${state === "waiting" && html`<button type="button" class="primary" onClick=${() => ask("Go on", `The other ${remaining} ${what}.`, "continue", "The plan goes on")}>Go on</button>`}
    ${[...UNDER_WAY, "ready"].includes(state) && html`<button type="button" onClick=${() => ask("Abort", `Nothing more is done with the ${remaining} that remain. What was done stays done.`, "abort", "The plan is aborted")}>Abort</button>`}
  </div>`;
}

/** Counts; does nothing else yet. */
export function PlanButtons({ filter }: { filter: { [name: string]: string } }): VNode {
  const maySend = useMay("send");
  const mayPurge = useMay("admin");
  const make = (kind: Plan["kind"]) =>
    confirm({
      title: `Plan to ${KINDS[kind]}`,
      text: "Those of this filter are counted, and what is left out is told with its reason. 0 are touched until you have looked the plan over and said so.",
      verb: "Count them",
      act: async () => {
        const { planId } = await post<Plan>("/v1/plans", { kind, filter });
        go(linkTo("plans", [planId]));
        return "The plan is there to be looked over";
      },
    });
  return html`<div class="actions">${maySend && html`<button type="button" onClick=${() => make("requeue")}>Plan to send again…</button>`}
    ${mayPurge && html`<button type="button" onClick=${() => make("purge")}>Plan to purge…</button>`}</div>`;
}
