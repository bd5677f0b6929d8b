// How things are: what waits, what became of the rest, and what needs a look.

import { get } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Card, Empty, Read, When } from "./parts.ts";
import type { Provider } from "./providers.ts";
import { linkTo } from "./route.ts";
import { Status } from "./status.ts";
import { type Statistics, Traffic } from "./traffic.ts";
import { about, compact, count, duration, percent, upTo } from "./words.ts";

export type Pause = { kind: string; name: string; reason: string; pausedAt: string };
type Untaken = {
  priority: string;
  channel?: string;
  region?: string;
  tenant: string;
  count: number;
  oldestAgeMs: number;
};
type Queue = {
  depth: { [lane: string]: number };
  processing: number;
  scheduled: number;
  oldestAgeMs: number;
  isEstimate: boolean;
  paused: Pause[];
  untaken: Untaken[];
};
type Ledger = {
  accepted: number;
  waiting: number;
  balanced: boolean;
  isEstimate: boolean;
  [ending: string]: number | boolean;
};
type Check = { name: string; healthy: boolean; degraded?: boolean; detail: string };
type Health = { status: string; checks: Check[]; uptime: number };

const EVERY_MS = 10_000;
const SELDOM_MS = 15_000;
/** What nobody takes is counted so far. */
const MOST_UNTAKEN = 1_000;

export function Overview(): VNode {
  const queue = useLive("queue", (signal) => get<Queue>("/v1/queue", signal), EVERY_MS);
  const ledger = useLive("ledger", (signal) => get<Ledger>("/v1/ledger", signal), SELDOM_MS);
  const health = useLive("health", (signal) => get<Health>("/health", signal), SELDOM_MS);
  const providers = useLive("providers", (signal) => get<{ data: Provider[] }>("/v1/providers", signal), 2 * SELDOM_MS);
  const statistics = useLive("statistics", (signal) => get<Statistics>("/v1/statistics?step=PT1M", signal), SELDOM_MS);
  const { status } = health.value ?? {};
  const isBalanced = ledger.value?.balanced;
  const balance =
    isBalanced === undefined
      ? undefined
      : html`<span class="line"><${Estimate} of=${ledger.value} /><${Status} is=${isBalanced ? "balanced" : "not balanced"} tone=${isBalanced ? "good" : "bad"} /></span>`;
  return html`
    <div class="heading"><h1>Overview</h1>${status !== undefined && html`<${Status} is=${status} />`}</div>
    <${Read} of=${queue}>${(now: Queue) => html`<${Figures} queue=${now} ledger=${ledger.value} statistics=${statistics.value} />`}<//>
    <${Read} of=${statistics}>${(hour: Statistics) => html`<${Traffic} statistics=${hour} />`}<//>
    <div class="columns">
      <${Card} title="Waiting, by lane" aside=${html`<${Estimate} of=${queue.value} />`}><${Read} of=${queue}>${(now: Queue) => html`<${Lanes} depth=${now.depth} />`}<//><//>
      <${Card} title="Ledger" aside=${balance}><${Read} of=${ledger}>${(now: Ledger) => html`<${LedgerView} ledger=${now} />`}<//><//>
    </div>
    <div class="columns">
      <${Card} title="Needs a look"><${Read} of=${queue}>${(now: Queue) => html`<${Stopped} queue=${now} providers=${providers.value?.data ?? []} />`}<//><//>
      <${Card} title="Health" aside=${health.value && html`<span class="soft">up for ${duration(health.value.uptime * 1000)}</span>`}>
        <${Read} of=${health}>${({ checks }: Health) => html`<${Checks} checks=${checks} />`}<//><//>
    </div>`;
}

/** Marks what was reckoned where there was too much to count. */
const Estimate = ({ of }: { of: { isEstimate: boolean } | undefined }): VNode | null =>
  of?.isEstimate ? html`<span class="soft">by estimate</span>` : null;

type FiguresProps = { queue: Queue; ledger: Ledger | undefined; statistics: Statistics | undefined };

function Figures({ queue, ledger, statistics }: FiguresProps): VNode {
  const hour = statistics?.data ?? [];
  const sum = (name: "accepted" | "sent" | "failed") => hour.reduce((total, line) => total + line[name], 0);
  // After an upgrade the record is counted in the background.
  const still = statistics?.isComplete === false ? ", still being counted" : "";
  const [sent, failed] = [sum("sent"), sum("failed")];
  const waiting = Object.values(queue.depth).reduce((sum, lane) => sum + lane, 0);
  const { isEstimate } = queue;
  const reckoned = isEstimate ? "by estimate, " : "";
  const late = queue.oldestAgeMs > 0 ? `the oldest for ${duration(queue.oldestAgeMs)}` : "nothing is late";
  const figures: [string, string, string][] = [
    ["Waiting", about(compact(waiting), isEstimate), reckoned + late],
    ["Being sent", compact(queue.processing), "in workers' hands"],
    ["Planned", about(compact(queue.scheduled), isEstimate), `${reckoned}not due yet`],
    [
      "Sent in an hour",
      statistics ? compact(sent) : "–",
      statistics ? `of ${compact(sum("accepted"))} accepted${still}` : "",
    ],
    ["Success", percent(sent, sent + failed), "of the last hour"],
    ["Failed", ledger ? compact(Number(ledger.failed ?? 0)) : "–", "for good, in all"],
  ];
  return html`<dl class="figures">${figures.map(([name, value, more]) => html`<div><dt>${name}</dt><dd>${value}<small>${more}</small></dd></div>`)}</dl>`;
}

function Lanes({ depth }: { depth: { [lane: string]: number } }): VNode {
  const most = Math.max(1, ...Object.values(depth));
  const lineOf = ([lane, waiting]: [string, number]) => html`<div class="bar"><span>${lane}</span>
    <i aria-hidden="true">${waiting > 0 && html`<b style=${{ width: `${(100 * waiting) / most}%` }}></b>`}</i><span>${count(waiting)}</span></div>`;
  return html`<div class="bars">${Object.entries(depth).map(lineOf)}</div>`;
}

function LedgerView({ ledger }: { ledger: Ledger }): VNode {
  const { accepted, waiting, balanced: _, isEstimate, ...endings } = ledger;
  const rows: [string, unknown][] = [
    ["accepted", count(accepted)],
    ["waiting", about(count(waiting), isEstimate)],
    ...Object.entries(endings).map(([ending, number]): [string, unknown] => [
      ending,
      number === 0 ? "0" : html`<a href=${linkTo("messages", [], { status: ending })}>${count(Number(number))}</a>`,
    ]),
  ];
  return html`<dl class="rows">${rows.map(([name, number]) => html`<div><dt>${name}</dt><dd>${number}</dd></div>`)}</dl>`;
}

function Stopped({ queue: { paused, untaken }, providers }: { queue: Queue; providers: Provider[] }): VNode {
  const open = providers.filter(({ breaker }) => breaker.state !== "closed");
  if (paused.length + untaken.length + open.length === 0) {
    return html`<${Empty} title="Nothing is stopped">What is paused, what no worker takes, and open breakers would be here.<//>`;
  }
  return html`<ul class="plain-list">
    ${open.map(({ name, breaker }) => html`<li><${Status} is=${breaker.state}>${`breaker ${breaker.state}`}<//> <a href=${linkTo("providers")}>${name}</a> <span class="soft">${breaker.reason}</span></li>`)}
    ${paused.map(({ kind, name, reason, pausedAt }) => html`<li><${Status} is="paused" /> ${kind} <strong>${name}</strong>: ${reason} <span class="soft">(<${When} at=${pausedAt} />)</span></li>`)}
    ${untaken.map((flow) => html`<li><${Status} is="not taken" tone="warn" /> ${wordsOf(flow)}</li>`)}</ul>`;
}

function wordsOf({ priority, channel, region, tenant, count: waiting, oldestAgeMs }: Untaken): string {
  const flow = [tenant, priority, channel, region].filter(Boolean).join(", ");
  const many = `${upTo(waiting, MOST_UNTAKEN)} ${waiting === 1 ? "notification" : "notifications"}`;
  return `${many} of ${flow}: no worker takes ${waiting === 1 ? "it" : "them"}, for ${duration(oldestAgeMs)}`;
}

const Checks = ({ checks }: { checks: Check[] }): VNode =>
  html`<ul class="checks">${checks.map(({ name, healthy, degraded, detail }) => {
    const is = healthy ? (degraded ? "degraded" : "healthy") : "unhealthy";
    return html`<li><strong>${name}</strong><span class="soft">${detail}</span><${Status} is=${is} /></li>`;
  })}</ul>`;
