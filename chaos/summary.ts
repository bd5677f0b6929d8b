// A run in words and numbers, for a person.

import { checksOf } from "./checker.ts";
import { recoveries } from "./checks/recovery.ts";
import { staleSettles } from "./checks/visits.ts";
import { groupBy, type History, type Violation } from "./history.ts";
import { leasesOf } from "./leases.ts";

const EXAMPLES = 3;

export function summarize(history: History, violations: Violation[]): string {
  const { settings, promised, notifications, events, sends, calls, ledgers, cancelled, journal } = history;
  const answers = countBy(promised, ({ answer }) => answer.kind);
  const duplicates = [...groupBy(calls, ({ id }) => id).values()].filter(({ length }) => length > 1).length;
  const taken = journal.filter(({ op, place }) => op === "insert" && place === "leased");
  const claims = [...groupBy(taken, ({ token }) => token).values()].map(({ length }) => length);
  const leases = leasesOf(history);
  const swept = leases.filter(({ origin }) => origin === "sweep").length;
  const zombies = countZombies(history);
  const begun = new Set(sends.map(({ id, attempt }) => `${id} ${attempt}`));
  const later = events.filter(({ type }) => type !== "accepted");
  const lost = events.filter(({ outcome }) => outcome === "lost");
  const unbegun = lost.filter(({ id, attempt }) => !begun.has(`${id} ${attempt}`)).length;
  const took = recoveries(history).flatMap(({ tookMs }) => (tookMs === undefined ? [] : [tookMs]));
  const { drainedAt, quietAt } = history;
  const lines = [
    `seed ${settings.seed}, ${settings.seconds} s of faults, ${settings.workers} workers${settings.mutant ? `, mutant ${settings.mutant}` : ""}`,
    `requests   ${line(answers)}; stored ${notifications.length}; cancels ${line(countBy(cancelled, ({ answer }) => answer))}`,
    `faults     ${line(countBy(history.faults, ({ kind, statement }) => (statement?.startsWith("carillon-") ? `${kind} ${statement.slice(9)}` : kind)))}`,
    `endings    ${line(countBy(notifications, ({ status }) => status))}`,
    `outcomes   ${line(countBy(later, ({ outcome, type }) => outcome ?? type))}`,
    `leases     ${taken.length} in ${claims.length} claims of at most ${Math.max(0, ...claims)}, ${swept} swept, ${staleSettles(history)} stale settles refused`,
    `lost       ${lost.length} attempts, of which ${unbegun} had not begun to be sent`,
    `provider   ${sends.length} sends, ${calls.length} taken, ${duplicates} notifications taken more than once, ${zombies} taken after the lease was lost`,
    `callbacks  ${posted(history)}`,
    `recovery   ${took.length} leases of killed workers, taken up after p50 ${ms(quantile(took, 0.5))}, max ${ms(quantile(took, 1))}`,
    `drain      ${drainedAt === undefined ? "never" : ms(drainedAt - quietAt)} after the faults; bound ${ms(history.drainBoundMs)}`,
    `ledger     ${ledgers.length} readings`,
    `log        ${line(countBy(notable(history), ({ message, error }) => (error ? `${message}: ${error}` : message)))}`,
  ];
  const broken = groupBy(violations, ({ guarantee, rule }) => `${guarantee} ${rule}`);
  const kept = checksOf(history).filter(({ guarantee }) => !violations.some((one) => one.guarantee === guarantee));
  lines.push(`held       ${kept.map(({ guarantee }) => guarantee).join(" ")}`);
  for (const [name, all] of broken) {
    lines.push(`VIOLATED   ${name} (${all.length})`);
    for (const { example } of all.slice(0, EXAMPLES)) lines.push(`             ${example}`);
  }
  return lines.join("\n");
}

function posted({ posts, callbacks: { notifications, events } }: History): string {
  const ids = new Set(posts.map(({ id }) => id)).size;
  const lost = events.filter(({ outcome }) => outcome === "lost").length;
  const again = posts.length - ids;
  return `${posts.length} posts of ${ids}, ${again} of them again; ${line(countBy(notifications, ({ status }) => status))}; ${lost} tries lost`;
}

/** Calls that a provider took after the lease had gone to somebody else: frozen between the send and the wire. */
function countZombies({ calls, ...history }: History): number {
  const leases = new Map(
    leasesOf(history)
      .filter(({ origin }) => origin === "claim")
      .map((lease) => [`${lease.id} ${lease.attempt} ${lease.pid}`, lease]),
  );
  return calls.filter(({ id, attempt, pid, at }) => {
    const end = leases.get(`${id} ${attempt} ${pid}`)?.end;
    return end?.op === "update" && end.at < at;
  }).length;
}

const notable = ({ logs }: History) => logs.filter(({ level }) => level === "error" || level === "fatal");

function countBy<Item>(items: Iterable<Item>, nameOf: (item: Item) => string): Map<string, number> {
  return new Map([...groupBy(items, nameOf)].map(([name, same]) => [name, same.length]));
}

const line = (counts: Map<string, number>): string =>
  [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ") || "none";

const quantile = (values: number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
const ms = (value: number): string => (Number.isNaN(value) ? "–" : `${Math.round(value)} ms`);
