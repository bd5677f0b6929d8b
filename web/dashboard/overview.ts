// How things are, now and a while back.

import { get } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Card, Empty, Facts, Read, When } from "./parts.ts";
import { linkTo } from "./route.ts";
import { Status } from "./status.ts";
import { compact, count, duration, many, percent } from "./words.ts";

export type Pause = { kind: string; name: string; reason: string; pausedAt: string; pausedBy?: string; until?: string };
type Queue = {
  engine: string;
  depth: { [lane: string]: number };
  processing: number;
  scheduled: number;
  oldestAgeMs: number;
  paused: Pause[];
  untaken: {
    priority: string;
    channel?: string;
    region?: string;
    tenant: string;
    count: number;
    oldestAgeMs: number;
  }[];
};
type Ledger = { accepted: number; waiting: number; balanced: boolean } & { [ending: string]: number };
type Health = {
  status: string;
  checks: { name: string; healthy: boolean; degraded?: boolean; detail: string }[];
  uptime: number;
};

const EVERY_MS = 5_000;

export function Overview(): VNode {
  const queue = useLive("queue", (signal) => get<Queue>("/v1/queue", signal), EVERY_MS);
  const ledger = useLive("ledger", (signal) => get<Ledger>("/v1/ledger", signal), EVERY_MS);
  const health = useLive("health", (signal) => get<Health>("/health", signal), 2 * EVERY_MS);
  const status = health.value?.status ?? "unknown";
  return html`
    <div class="heading"><h1>Overview</h1>${health.value && html`<${Status} is=${status} />`}</div>
    <${Read} of=${queue}>${(now: Queue) => html`<${Figures} queue=${now} ledger=${ledger.value} />`}<//>
    <div class="columns">
      <${Card} title="Waiting, by lane"><${Read} of=${queue}>${(now: Queue) => html`<${Lanes} depth=${now.depth} />`}<//><//>
      <${Card} title="Ledger" aside=${ledger.value && html`<${Status} is=${ledger.value.balanced ? "balanced" : "unbalanced"} tone=${ledger.value.balanced ? "good" : "bad"} />`}>
        <${Read} of=${ledger}>${(now: Ledger) => html`<${LedgerView} ledger=${now} />`}<//><//>
    </div>
    <div class="columns">
      <${Card} title="Stopped or not taken"><${Read} of=${queue}>${(now: Queue) => html`<${Stopped} queue=${now} />`}<//><//>
      <${Card} title="Health"><${Read} of=${health}>${(now: Health) => html`<${Checks} health=${now} />`}<//><//>
    </div>`;
}

function Figures({ queue, ledger }: { queue: Queue; ledger: Ledger | undefined }): VNode {
  const waiting = Object.values(queue.depth).reduce((sum, lane) => sum + lane, 0);
  const good = (ledger?.sent ?? 0) + (ledger?.delivered ?? 0);
  const over = ledger ? ledger.accepted - ledger.waiting : 0;
  const figures: [string, string, string][] = [
    [
      "Waiting",
      compact(waiting),
      queue.oldestAgeMs > 0 ? `the oldest for ${duration(queue.oldestAgeMs)}` : "nothing is late",
    ],
    ["Being sent", compact(queue.processing), "in workers' hands"],
    ["Planned", compact(queue.scheduled), "not due yet"],
    ["Accepted", ledger ? compact(ledger.accepted) : "–", "as long as records are kept"],
    ["Sent", percent(good, over), ledger ? `${count(good)} of ${count(over)} that ended` : ""],
    ["Failed", ledger ? compact(ledger.failed ?? 0) : "–", "for good"],
  ];
  return html`<dl class="figures">${figures.map(([name, value, more]) => html`<div><dt>${name}</dt><dd>${value}<small>${more}</small></dd></div>`)}</dl>`;
}

function Lanes({ depth }: { depth: { [lane: string]: number } }): VNode {
  const most = Math.max(1, ...Object.values(depth));
  return html`<div class="bars">${Object.entries(depth).map(
    ([lane, waiting]) =>
      html`<div class="bar"><span>${lane}</span><i aria-hidden="true"><b style=${{ width: `${(100 * waiting) / most}%`, visibility: waiting > 0 ? "visible" : "hidden" }}></b></i><span>${count(waiting)}</span></div>`,
  )}</div>`;
}

function LedgerView({ ledger }: { ledger: Ledger }): VNode {
  const { balanced: _, accepted, waiting, ...endings } = ledger;
  return html`<${Facts} of=${[
    ["accepted", count(accepted)],
    ["waiting", count(waiting)],
    ...Object.entries(endings).map(([ending, number]): [string, VNode] => [
      ending,
      html`<a href=${linkTo("messages", [], { status: ending })}>${count(number)}</a>`,
    ]),
  ]} />`;
}

function Stopped({ queue: { paused, untaken } }: { queue: Queue }): VNode {
  if (paused.length === 0 && untaken.length === 0) {
    return html`<${Empty} title="Nothing is stopped">What is paused, and what no worker takes, would be listed here.<//>`;
  }
  return html`<ul class="plain-list">
    ${paused.map((pause) => html`<li><${Status} is="paused" /> ${pause.kind} <strong>${pause.name}</strong>: ${pause.reason} <span class="soft">(<${When} at=${pause.pausedAt} />)</span></li>`)}
    ${untaken.map(
      ({
        priority,
        channel,
        region,
        tenant,
        count: waiting,
        oldestAgeMs,
      }) => html`<li><${Status} is="not taken" tone="warn" /> ${many(waiting, "notification")} of
        ${tenant}, ${[priority, channel, region].filter(Boolean).join(", ")}: no worker takes them, for ${duration(oldestAgeMs)}</li>`,
    )}</ul>`;
}

function Checks({ health: { checks, uptime } }: { health: Health }): VNode {
  return html`<ul class="plain-list">${checks.map(({ name, healthy, degraded, detail }) => {
    const is = healthy ? (degraded ? "degraded" : "healthy") : "unhealthy";
    return html`<li><${Status} is=${is} /> <strong>${name}</strong> <span class="soft">${detail}</span></li>`;
  })}</ul><p class="soft">Up for ${duration(uptime * 1000)}.</p>`;
}
