// Who leads, and what stands in the database's way: for those who run the deployment.

import { get } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { useLive } from "./live.ts";
import { Card, Empty, Read, When } from "./parts.ts";
import { Status, type Tone } from "./status.ts";
import { type Column, Table } from "./table.ts";
import { compact, duration } from "./words.ts";

type Lead = { name: string; holder: string; leads: boolean; until: string };
type Rows = { name: string; rows: number; deadRows: number; vacuumedAt?: string };
type House = {
  leaders: Lead[];
  oldestTransaction?: { who: string; state: string; ageMs: number };
  tables: Rows[];
};

const EVERY_MS = 10_000;
/** As the doctor has it: a minute keeps followers and vacuum waiting, ten of them keep dead rows for everybody. */
const [LONG_MS, TOO_LONG_MS] = [60_000, 600_000];

export function Standing(): VNode {
  const house = useLive("house", (signal) => get<House>("/v1/house", signal), EVERY_MS);
  return html`<div class="columns">
    <${Card} title="Who leads"><${Read} of=${house}>${({ leaders }: House) =>
      leaders.length === 0
        ? html`<${Empty} title="Nobody leads">Start a process with the role <code>keeper</code>.<//>`
        : html`<${Table} label="Leaders" items=${leaders} columns=${LEADERS} keyOf=${({ name }: Lead) => name} />`}<//><//>
    <${Card} title="The queue in the database" aside=${html`<span class="soft">rows by estimate</span>`}><${Read} of=${house}>${({
      oldestTransaction,
      tables,
    }: House) => html`
      <${Oldest} of=${oldestTransaction} />
      <${Table} label="Tables of the queue" items=${tables} columns=${TABLES} keyOf=${({ name }: Rows) => name} />`}<//><//>
  </div>`;
}

function Oldest({ of }: { of: House["oldestTransaction"] }): VNode {
  if (of === undefined) return html`<p class="above soft">No transaction is open.</p>`;
  const { who, state, ageMs } = of;
  const tone: Tone = ageMs > TOO_LONG_MS ? "bad" : ageMs > LONG_MS ? "warn" : "good";
  return html`<p class="above"><span class="soft">Oldest open transaction:</span> <${Status} is=${duration(ageMs)} tone=${tone} /> ${who}, ${state}</p>`;
}

const LEADERS: Column<Lead>[] = [
  { title: "Role", cell: ({ name }) => name },
  {
    title: "State",
    cell: ({ leads }) =>
      leads ? html`<${Status} is="held" tone="good" />` : html`<${Status} is="nobody" tone="warn" />`,
  },
  {
    title: "Holder",
    isLong: true,
    cell: ({ holder, leads }) => html`${!leads && "last "}<code>${holder}</code>`,
  },
  { title: "Until", isNumber: true, cell: ({ until }) => html`<${When} at=${until} />` },
];
const TABLES: Column<Rows>[] = [
  { title: "Table", cell: ({ name }) => html`<code>${name}</code>` },
  { title: "Rows", isNumber: true, cell: ({ rows }) => compact(rows) },
  { title: "Dead rows", isNumber: true, cell: ({ deadRows }) => compact(deadRows) },
  { title: "Vacuumed", isNumber: true, cell: ({ vacuumedAt }) => html`<${When} at=${vacuumedAt} />` },
];
