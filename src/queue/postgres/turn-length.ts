// How long tenants' turns are in a claim, and so of how many tenants it takes something.
//
// A turn costs some 30 µs however long it is: flows to find, a line to count, a place in the hand. So it is as long as the worker is busy with
// it for TURN_MS, and everybody's comes soon whether sends take a microsecond or ten seconds: of a thousand tenants each has two a second. Where tenants
// have less than that, turns are as long as what they had: a claim that asks too few has to look again.
//
// State: how fast claims take from the lane with the backlog, in which they end, and how much its tenants had.

export type TurnLength = {
  /** In a claim of so many of these lanes. */
  of(ranks: readonly number[], count: number): number;
  claimed(claim: Claim): void;
};

type Claim = {
  ranks: readonly number[];
  count: number;
  /** The lane in which it ended, if it brought anything. */
  end: number | undefined;
  isFull: boolean;
  /** How long turns were at first; where tenants had less than that, how much each had, as a mean. */
  turn: number;
  hadEach: number | undefined;
  at: number;
};

const TURN_MS = 0.5;
/** However few are claimed, they are of more than one. */
const LEAST_TENANTS = 20;
/** How much the last claim counts in the pace. */
const NEWEST = 1 / 4;
/** Who has so much of a turn has as good as all of it. */
const NEARLY = 3 / 4;
/** Longer turns are tried no sooner than so long after a claim that had to look again. */
const LONGER_MS = 200;

export function createTurnLength(): TurnLength {
  let lane: number | undefined;
  let fullAt: number | undefined;
  let byPace: number | undefined;
  let byTenants = Number.POSITIVE_INFINITY;
  let shortAt = Number.NEGATIVE_INFINITY;
  const isOf = (ranks: readonly number[]) => lane !== undefined && ranks.includes(lane);

  return {
    of(ranks, count) {
      const most = count / LEAST_TENANTS;
      return Math.max(1, Math.floor(isOf(ranks) ? Math.min(most, byPace ?? most, byTenants) : most));
    },
    claimed({ ranks, count, end, isFull, turn, hadEach, at }) {
      // A few urgent ones beside a backlog say nothing of it.
      if (fullAt !== undefined && !isOf(ranks)) return;
      if (end !== undefined && end !== lane) byTenants = Number.POSITIVE_INFINITY;
      lane = end ?? lane;
      if (isFull && fullAt !== undefined) {
        const inTime = (TURN_MS * count) / Math.max(TURN_MS, at - fullAt);
        byPace = (1 - NEWEST) * (byPace ?? inTime) + NEWEST * inTime;
      }
      fullAt = isFull ? at : undefined;
      if (hadEach !== undefined) {
        if (hadEach < NEARLY * turn) byTenants = Math.max(1, Math.ceil(hadEach));
        shortAt = at;
      } else if (isFull && at - shortAt >= LONGER_MS) byTenants *= 2;
    },
  };
}
