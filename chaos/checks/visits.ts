// A run that met no trouble proves nothing: what must have happened at least once.

import type { Check, History } from "../history.ts";
import { leasesOf } from "../leases.ts";

/** Settlements refused because the lease had gone to a sweeper; where only the answer was lost, the log says the same. */
export function staleSettles(history: History): number {
  const swept = new Set(
    leasesOf(history)
      .filter(({ origin, end }) => origin === "claim" && end?.op === "update")
      .map(({ id, attempt, pid }) => `${id} ${attempt} ${pid}`),
  );
  return history.logs.filter(
    ({ message, id, attempt, pid }) => message.startsWith("lease lost") && swept.has(`${id} ${attempt} ${pid}`),
  ).length;
}

const KINDS = [
  ...["kill worker", "kill api", "freeze worker", "cut connections", "cut-before", "blackhole", "crash postgres"],
  ...["long transaction", "prepared transaction"],
];

export const visited: Check = {
  guarantee: "visits",
  promise:
    "the run met a swept lease, a stale settle, an ambiguous answer, a lost commit reply, a follower killed, callbacks again and given up, and every kind of fault",
  run(history, report) {
    const { journal, events, faults, readings, posts, callbacks } = history;
    const happened: { [what: string]: boolean } = {
      "a lease swept": journal.some(({ op, token, oldToken }) => op === "update" && token !== oldToken),
      "a stale settle refused": staleSettles(history) > 0,
      "an ambiguous answer": events.some(({ outcome }) => outcome === "ambiguous"),
      "an attempt lost with its worker": events.some(({ outcome }) => outcome === "lost"),
      "a follower that began again": readings.some(({ follower, after }, n) =>
        readings.slice(0, n).some((one) => one.follower === follower && one.after === after && one.facts.length > 0),
      ),
      "a callback that came again": new Set(posts.map(({ id }) => id)).size < posts.length,
      "a callback that was given up": callbacks.notifications.some(({ status }) => status === "failed"),
      "a commit whose reply was lost": faults.some(({ kind }) => kind === "cut-after"),
    };
    for (const kind of KINDS) happened[kind] = faults.some((fault) => fault.kind === kind);
    for (const [what, didHappen] of Object.entries(happened)) if (!didHappen) report("did not visit", what);
  },
};
