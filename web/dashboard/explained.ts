// What would become of the same request now: asked for, nothing is sent.

import { useState } from "preact/hooks";
import { post } from "./api.ts";
import { html, type VNode } from "./html.ts";
import { requestOf, type Whole } from "./message.ts";
import { Card, Code, Facts, Trouble } from "./parts.ts";
import { useMay } from "./session.ts";
import { Status } from "./status.ts";
import { Table } from "./table.ts";
import { duration } from "./words.ts";

type Candidate = { provider: string; accepts: boolean; faults?: { path: string; message: string }[]; breaker: string };
type Decisions = {
  wouldSend: boolean;
  status: string;
  outcome: { kind: string; reason?: string };
  provider?: string;
  suppressed: string | false;
  templateError?: string;
  route: Candidate[];
  retriedFor: { leastMs: number; mostMs: number };
};

const COLUMNS = [
  { title: "Provider", cell: ({ provider }: Candidate) => provider },
  {
    title: "Takes it",
    cell: ({ accepts, faults = [] }: Candidate) =>
      accepts ? "yes" : faults.map(({ message }) => message).join(", ") || "no",
  },
  { title: "Breaker", cell: ({ breaker }: Candidate) => html`<${Status} is=${breaker} />` },
];

export function Explained({ message }: { message: Whole }): VNode | null {
  const [decisions, setDecisions] = useState<Decisions>();
  const [error, setError] = useState<unknown>();
  const mayAsk = useMay("send");
  if (!mayAsk || message.forgotten) return null;
  const ask = () => {
    setError(undefined);
    post<Decisions>("/v1/explain", requestOf(message)).then(setDecisions, setError);
  };
  return html`<${Card} title="If it were sent now" aside=${html`<button type="button" class="small" onClick=${ask}>Explain</button>`}>
    <${Trouble} error=${error} />
    ${decisions ? html`<${Told} decisions=${decisions} />` : html`<p class="soft">Every decision about the same request, as the guards stand now. Nothing is sent.</p>`}
  <//>`;
}

function Told({ decisions }: { decisions: Decisions }): VNode {
  const { wouldSend, status, outcome, provider, suppressed, templateError, route, retriedFor } = decisions;
  return html`<${Facts} of=${[
    ["Would be sent", wouldSend ? "yes" : "no"],
    ["Status after the first attempt", html`<${Status} is=${status} />`],
    ["Outcome", [outcome.kind, outcome.reason].filter(Boolean).join(": ")],
    ["By", provider ?? "nobody"],
    ["Suppressed", suppressed === false ? "no" : suppressed],
    templateError !== undefined && ["Template", templateError],
    ["Tried for", `${duration(retriedFor.leastMs)} to ${duration(retriedFor.mostMs)}`],
  ]} />
  <h3>Route</h3><${Table} label="Route" items=${route} columns=${COLUMNS} keyOf=${({ provider: name }: Candidate) => name} />
  <details><summary>Everything it said</summary><${Code} label="Decisions" of=${decisions} /></details>`;
}
