// A run that met no trouble proves nothing: what must have happened at least once.

import type { Check, History } from "../history.ts";

/** A worker that was frozen finds out soon after it goes on, or once it has the database again. */
const SOON_MS = 10_000;

/** Settlements refused to a worker that had been frozen; a settlement whose answer was lost looks alike in the log. */
export function staleSettles({ logs, faults }: History): number {
  const freezes = faults.filter(({ kind }) => kind === "freeze worker");
  return logs.filter(
    ({ message, pid, at }) =>
      message.startsWith("lease lost") &&
      freezes.some((one) => one.pid === pid && at >= one.at && at <= (one.until ?? 0) + SOON_MS),
  ).length;
}

export const visited: Check = {
  guarantee: "visits",
  promise:
    "the run met a swept lease, a stale settle, an ambiguous answer, a lost commit reply, and every kind of fault",
  run(history, report) {
    const { journal, events, faults } = history;
    const happened: { [what: string]: boolean } = {
      "a lease swept": journal.some(({ op, token, oldToken }) => op === "update" && token !== oldToken),
      "a stale settle refused": staleSettles(history) > 0,
      "an ambiguous answer": events.some(({ outcome }) => outcome === "ambiguous"),
      "an attempt lost with its worker": events.some(({ outcome }) => outcome === "lost"),
      "a commit whose reply was lost": faults.some(({ kind }) => kind === "cut-after"),
    };
    for (const kind of ["kill worker", "kill api", "freeze worker", "cut connections", "cut-before", "blackhole"]) {
      happened[kind] = faults.some((fault) => fault.kind === kind);
    }
    happened["crash postgres"] = faults.some(({ kind }) => kind === "crash postgres");
    for (const [what, didHappen] of Object.entries(happened)) if (!didHappen) report("did not visit", what);
  },
};
