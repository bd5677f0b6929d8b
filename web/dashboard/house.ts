// Workers, the database and the brokers: what it runs on.

import { get, named, post } from "./api.ts";
import { confirm } from "./confirm.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Card, Empty, Read, When } from "./parts.ts";
import { useOperates } from "./session.ts";
import { Standing } from "./standing.ts";
import { Status } from "./status.ts";
import { type Column, Table } from "./table.ts";
import { Whereabouts } from "./whereabouts.ts";
import { compact, count, duration } from "./words.ts";

export type Worker = {
  name: string;
  alive: boolean;
  startedAt: string;
  seenAt: string;
  held?: number;
  sending?: number;
  delivered?: number;
  takes: { [what: string]: string[] };
  /** Besides PostgreSQL. */
  engines: string[];
};
type Check = { name: string; healthy: boolean; degraded?: boolean; latencyMs: number; detail: string };
type Health = { status: string; checks: Check[]; uptime: number };
type Connector = {
  name: string;
  type: string;
  state: string;
  reason?: string;
  error?: string;
  carried: number;
  refused: number;
  lag: { ms?: number; facts?: number; messages?: number };
};

const EVERY_MS = 5_000;

export function House(): VNode {
  const workers = useLive("workers", (signal) => get<{ data: Worker[] }>("/v1/workers", signal), EVERY_MS);
  const health = useLive("health", (signal) => get<Health>("/health", signal), 2 * EVERY_MS);
  const operates = useOperates();
  return html`<div class="heading"><h1>Workers and database</h1>${health.value && html`<${Status} is=${health.value.status} />`}</div>
    <${Whereabouts} workers=${workers.value?.data ?? []} />
    <${Card} title="Workers"><${Read} of=${workers}>${({ data }: { data: Worker[] }) =>
      data.length === 0
        ? html`<${Empty} title="No worker is alive">What is accepted waits. Start a process with the role <code>worker</code>.<//>`
        : html`<${Table} label="Workers" items=${data} columns=${WORKERS} keyOf=${(one: Worker) => one.name} />`}<//><//>
    <${Card} title="Database, queue and what follows" aside=${health.value && html`<span class="soft">up for ${duration(health.value.uptime * 1000)}</span>`}>
      <${Read} of=${health}>${({ checks }: Health) => html`<${Table} label="Health" items=${checks} columns=${CHECKS} keyOf=${(one: Check) => one.name} />`}<//><//>
    ${operates && html`<${Standing} /><${Connectors} kind="sources" /><${Connectors} kind="sinks" />`}`;
}

const WORKERS: Column<Worker>[] = [
  { title: "Worker", isLong: true, cell: ({ name }) => html`<code>${name}</code>` },
  { title: "State", cell: ({ alive }) => (alive ? html`<${Status} is="alive" />` : html`<${Status} is="gone" />`) },
  { title: "In hand", isNumber: true, cell: ({ held }) => count(held) },
  { title: "Sending", isNumber: true, cell: ({ sending }) => count(sending) },
  { title: "Delivered", isNumber: true, cell: ({ delivered }) => (delivered === undefined ? "–" : compact(delivered)) },
  {
    title: "Takes",
    isLong: true,
    cell: ({ takes, engines }) => {
      const what = Object.entries(takes).map(([name, names]) => `${name}: ${names.join(", ")}`);
      return `${what.join("; ") || "everything"}${engines.length > 0 ? `, also from ${engines.join(" and ")}` : ""}`;
    },
  },
  { title: "Started", isNumber: true, cell: ({ startedAt }) => html`<${When} at=${startedAt} />` },
  { title: "Seen", isNumber: true, cell: ({ seenAt }) => html`<${When} at=${seenAt} />` },
];
const CHECKS: Column<Check>[] = [
  { title: "Part", cell: ({ name }) => name },
  {
    title: "State",
    cell: ({ healthy, degraded }) =>
      html`<${Status} is=${healthy ? (degraded ? "degraded" : "healthy") : "unhealthy"} />`,
  },
  { title: "Says", isLong: true, cell: ({ detail }) => detail },
  { title: "Answered in", isNumber: true, cell: ({ latencyMs }) => duration(latencyMs) },
];

function Connectors({ kind }: { kind: "sources" | "sinks" }): VNode | null {
  const list = useLive(kind, (signal) => get<{ data: Connector[] }>(`/v1/${kind}`, signal), 2 * EVERY_MS);
  // Most have none.
  if (!list.value || list.value.data.length === 0) return null;
  const columns: Column<Connector>[] = [
    { title: "Name", cell: ({ name, type }) => html`${name} <span class="soft">${type}</span>` },
    {
      title: "State",
      isLong: true,
      cell: ({ state, reason, error }) => html`<${Status} is=${state} /> ${reason ?? error}`,
    },
    { title: "Carried", isNumber: true, cell: ({ carried }) => compact(carried) },
    { title: "Refused", isNumber: true, cell: ({ refused }) => compact(refused) },
    {
      title: "Behind",
      isNumber: true,
      cell: ({ lag }) => (lag.ms !== undefined ? duration(lag.ms) : count(lag.messages)),
    },
    {
      title: "Action",
      cell: (one) =>
        html`<button type="button" class="small" onClick=${() => stop(kind, one, list.reload)}>${one.state === "paused" ? "Resume" : "Pause"}<span class="hidden"> ${one.name}</span></button>`,
    },
  ];
  return html`<${Card} title=${kind === "sources" ? "Sources" : "Sinks"}><${Table} label=${kind} items=${list.value.data} columns=${columns} keyOf=${(one: Connector) => one.name} /><//>`;
}

function stop(kind: "sources" | "sinks", { name, state }: Connector, reload: () => void): void {
  const path = `/v1/${kind}/${named(name)}`;
  const isPaused = state === "paused";
  confirm({
    title: isPaused ? `Go on with ${name}?` : `Pause ${name}?`,
    text: isPaused
      ? `1 of the ${kind} goes on where it was.`
      : `1 of the ${kind} stops for now. Nothing is lost by that.`,
    verb: isPaused ? "Resume" : "Pause",
    needsReason: !isPaused,
    act: async (reason) => {
      await post(`${path}/${isPaused ? "resume" : "pause"}`, isPaused ? undefined : { reason });
      reload();
      return isPaused ? `${name} goes on` : `${name} is paused`;
    },
  });
}
