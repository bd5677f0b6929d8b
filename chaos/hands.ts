// What each worker had in hand at any moment: claimed, and not begun, handed back or lost.

import { groupBy, type History } from "./history.ts";
import { type Lease, leasesOf, linkSends } from "./leases.ts";
import { wayOf } from "./ways.ts";

export type InHand = {
  lease: Lease;
  tenant: number;
  rank: number;
  way: string;
  takenAt: number;
  /** Of its send, if there was one. */
  begunAt: number | undefined;
  /** When it was no longer waiting: begun, or gone. */
  until: number;
};

/** By worker, in the order of claims. */
export function handsOf(history: History): Map<number, InHand[]> {
  const rows = new Map(history.notifications.map((row) => [row.id, row]));
  const leases = leasesOf(history);
  const begun = new Map([...linkSends(history.sends, leases)].map(([send, lease]) => [lease, send.at]));
  const all = leases
    .filter(({ origin }) => origin === "claim")
    .flatMap((lease): InHand[] => {
      const row = rows.get(lease.id);
      if (!row) return [];
      const begunAt = begun.get(lease);
      const until = begunAt ?? lease.end?.committedAt ?? Number.POSITIVE_INFINITY;
      const { tenant, priority: rank } = lease.from;
      const way = wayOf(tenant, row.request);
      return [{ lease, tenant, rank, way, takenAt: lease.from.committedAt, begunAt, until }];
    });
  return groupBy(all, ({ lease }) => lease.worker);
}

/** What waits in a hand at that moment. */
export const waitingAt = (hand: readonly InHand[], at: number): InHand[] => waitingBetween(hand, at, at);

const waitingBetween = (hand: readonly InHand[], from: number, to: number): InHand[] =>
  hand.filter(({ takenAt, until }) => takenAt <= to && until > from);

/** Between a worker's look at its hand and the start of the claim that it asks for: connections are few, and so are processors. */
const ASKING_MS = 250;

/** An engine is asked in between, and is waited for as long as this where it does not answer. */
const PATIENCE_MS = 250;

/**
 * What a worker may have had in mind when it asked for a claim that began at that moment. One that was frozen until then has not heard
 * of what it lost meanwhile.
 */
export function mindsOf(history: History): (worker: number, beganAt: number) => InHand[] {
  const { workers, faults, settings } = history;
  const hands = handsOf(history);
  const pids = new Map(workers.map(({ id, pid }) => [id, pid]));
  const askingMs = ASKING_MS + (settings.engine === "postgres" ? 0 : PATIENCE_MS);
  return (worker, beganAt) => {
    const since = beganAt - askingMs;
    const frozen = faults.filter(
      ({ kind, pid, at, until = at }) =>
        kind === "freeze worker" && pid === pids.get(worker) && at < beganAt && until > since,
    );
    return waitingBetween(hands.get(worker) ?? [], Math.min(since, ...frozen.map(({ at }) => at)), beganAt);
  };
}
