// The last hour, minute by minute: how much, how well, how fast.

import { html, type VNode } from "./html.ts";
import { Card, Empty } from "./parts.ts";
import { Plot } from "./plot.ts";
import { compact, duration } from "./words.ts";

type Line = {
  at: string;
  accepted: number;
  sent: number;
  failed: number;
  success: number | null;
  latencyMs: { p50: number; p90: number; p99: number } | null;
};
export type Statistics = { since: string; until: string; isComplete: boolean; data: Line[] };

const STEP_MS = 60_000;

export function Traffic({ statistics }: { statistics: Statistics }): VNode {
  return statistics.data.length === 0
    ? html`<${Card} title="The last hour"><${Empty} title="It was quiet">What is accepted and sent is drawn here, minute by minute.<//><//>`
    : html`<${Plots} statistics=${statistics} />`;
}

function Plots({ statistics: { since, until, data } }: { statistics: Statistics }): VNode {
  const byMinute = new Map(data.map((line) => [Date.parse(line.at), line]));
  const minutes: number[] = [];
  for (let at = Date.parse(since); at < Date.parse(until); at += STEP_MS) minutes.push(at);
  const atSeconds = minutes.map((at) => at / 1000);
  const values = (read: (line: Line) => number | null | undefined, otherwise: number | null) =>
    minutes.map((at) => {
      const line = byMinute.get(at);
      return line === undefined ? otherwise : (read(line) ?? otherwise);
    });
  return html`<div class="columns">
    <${Card} title="Accepted, sent and failed a minute"><${Plot} label="Accepted, sent and failed a minute" atSeconds=${atSeconds} series=${[
      { label: "accepted", tone: "accent", values: values(({ accepted }) => accepted, 0) },
      { label: "sent", tone: "good", values: values(({ sent }) => sent, 0) },
      { label: "failed", tone: "bad", values: values(({ failed }) => failed, 0) },
    ]} unit=${compact} /><//>
    <${Card} title="How long attempts took"><${Plot} label="How long attempts took" atSeconds=${atSeconds} series=${[
      { label: "half within", tone: "accent", values: values(({ latencyMs }) => latencyMs?.p50, null) },
      { label: "99 % within", tone: "warn", values: values(({ latencyMs }) => latencyMs?.p99, null) },
    ]} unit=${duration} /><//>
  </div>`;
}
