// The leases of a run, put together from the journal, and which of them each send belongs to.

import { type Change, groupBy, type History, type Send } from "./history.ts";

export type Lease = {
  seq: number;
  id: string;
  attempt: number;
  token: number;
  worker: number;
  /** Of the worker's process. */
  pid: number;
  origin: "claim" | "sweep";
  from: Change;
  /** Each time it was set or prolonged: when that statement began, and until when it then held. */
  terms: { beganAt: number; until: number }[];
  /** What ended it: its deletion, or the sweep that took it over. */
  end?: Change;
};

export function leasesOf({ journal, workers }: Pick<History, "journal" | "workers">): Lease[] {
  const pids = new Map(workers.map(({ id, pid }) => [id, pid]));
  const leases: Lease[] = [];
  const open = new Map<number, Lease>();
  const begin = (change: Change, origin: Lease["origin"]) => {
    const { seq, id, attempt, token, worker, until, beganAt } = change;
    const lease: Lease = {
      ...{ seq, id, attempt, origin, token: token ?? -1, worker: worker ?? -1, pid: pids.get(worker ?? -1) ?? -1 },
      ...{ from: change, terms: [{ beganAt, until: until ?? -1 }] },
    };
    leases.push(lease);
    open.set(seq, lease);
  };
  for (const change of journal) {
    if (change.place !== "leased") continue;
    const held = open.get(change.seq);
    if (change.op === "insert") begin(change, "claim");
    else if (change.op === "update" && change.token === change.oldToken) {
      held?.terms.push({ beganAt: change.beganAt, until: change.until ?? -1 });
    } else {
      if (held) held.end = change;
      open.delete(change.seq);
      if (change.op === "update") begin(change, "sweep");
    }
  }
  return leases;
}

/** Until when the lease held, as far as its holder could know at that instant. */
export function untilAt({ terms }: Lease, at: number): number {
  return terms.reduce(
    (until, term) => (term.beganAt <= at ? Math.max(until, term.until) : until),
    terms[0]?.until ?? -1,
  );
}

/** Date.now() cuts off what the database keeps of a millisecond. */
const CLOCK_MS = 2;

/** The claim that a send was made under: the last of that attempt, by that process, before it. */
export function linkSends(sends: readonly Send[], leases: readonly Lease[]): Map<Send, Lease | undefined> {
  const claims = groupBy(
    leases.filter(({ origin }) => origin === "claim"),
    ({ id }) => id,
  );
  return new Map(
    sends.map((send) => {
      const its = claims.get(send.id) ?? [];
      const lease = its.findLast(
        ({ attempt, pid, from }) =>
          attempt === send.attempt && pid === send.pid && from.committedAt <= send.at + CLOCK_MS,
      );
      return [send, lease];
    }),
  );
}
