// A run with brokers in a few lines.

import { groupBy, type Violation } from "../history.ts";
import { BROKER_CHECKS } from "./checks.ts";
import { type BrokerHistory, kindOf } from "./history.ts";

const EXAMPLES = 5;

export function summarizeBrokers(history: BrokerHistory, violations: readonly Violation[]): string {
  const { seed, seconds, mutant, sent, written, accepted, refused, facts, arrivals, faults, rebalances } = history;
  const { quietAt, drainedAt } = history;
  const isKept = (guarantee: string) => !violations.some((one) => one.guarantee === guarantee);
  const lines = [
    `run        seed ${seed}, ${seconds} s${mutant ? `, mutant ${mutant}` : ""}`,
    `written    ${line(written.map(({ key }) => kindOf(key)))}; ${sent.filter(({ isConfirmed }) => !isConfirmed).length} of ${sent.length} not confirmed`,
    `made of it ${accepted.length} notifications, ${refused.length} refusals, ${facts.length} facts`,
    ...arrivals.map(({ sink, facts: told }) => `sink       ${sink}: ${told.length}, ${repeated(told)} of them again`),
    `faults     ${line(faults.map(({ kind }) => kind))}; rebalances ${rebalances}`,
    `drain      ${drainedAt === undefined ? `never: ${history.failing.join("; ")}` : `${drainedAt - quietAt} ms after the faults`}`,
    `held       ${BROKER_CHECKS.map(({ guarantee }) => guarantee)
      .filter(isKept)
      .join(" ")}`,
  ];
  for (const [name, all] of groupBy(violations, ({ guarantee, rule }) => `${guarantee} ${rule}`)) {
    lines.push(`VIOLATED   ${name} (${all.length})`);
    for (const { example } of all.slice(0, EXAMPLES)) lines.push(`             ${example}`);
  }
  return lines.join("\n");
}

const repeated = (told: readonly { id: string }[]): number => told.length - new Set(told.map(({ id }) => id)).size;

const line = (names: readonly string[]): string =>
  [...groupBy(names, (name) => name)]
    .sort(([, a], [, b]) => b.length - a.length)
    .map(([name, same]) => `${name} ${same.length}`)
    .join(", ") || "none";
