// How long tenants' turns are in a claim, and so of how many tenants it takes something.
//
// A turn costs some 30 µs however long it is: flows to find, a line to count, a place in the hand. So it is as long as the worker is busy with
// it for TURN_MS, and everybody's comes soon whether sends take a microsecond or ten seconds: of a thousand tenants each has two a second. Where tenants
// have less than that, turns are as long as what they had: a claim that asks too few has to look again.
//
// State: how fast claims take from a backlog, in which lane they end, and how much tenants had in each.

export type TurnLength = {
  /** In a claim of so many of these lanes; a mean, where tenants have less than a whole turn. */
  of(ranks: readonly number[], count: number): number;
  claimed(claim: Claim): void;
};

type Claim = {
  ranks: readonly number[];
  count: number;
  isFull: boolean;
  /** The lane in which its first look ended, if it brought anything; and where that came short, how much each tenant had of it, as a mean. */
  end: number | undefined;
  hadEach: number | undefined;
  at: number;
};

type Lane = { byTenants: number; shortAt: number };

const TURN_MS = 0.5;
/** However few are claimed, they are of more than one; and of many where it is not known yet what they have. */
const LEAST_TENANTS = { known: 20, unknown: 200 };
/** How much the last claim counts in the pace. */
const NEWEST = 1 / 4;
/** Longer turns are tried no sooner than so long after a claim that had to look again. */
const LONGER_MS = 200;

export function createTurnLength(): TurnLength {
  const lanes = new Map<number, Lane>();
  let last: number | undefined;
  let fullAt: number | undefined;
  let byPace = Number.POSITIVE_INFINITY;

  function laneOf(rank: number): Lane {
    const known = lanes.get(rank);
    if (known) return known;
    const lane = { byTenants: Number.POSITIVE_INFINITY, shortAt: Number.NEGATIVE_INFINITY };
    lanes.set(rank, lane);
    return lane;
  }

  return {
    of(ranks, count) {
      if (last === undefined || !ranks.includes(last)) return atLeastOne(count / LEAST_TENANTS.unknown);
      return Math.min(atLeastOne(Math.min(count / LEAST_TENANTS.known, byPace)), laneOf(last).byTenants);
    },
    claimed({ ranks, count, isFull, end, hadEach, at }) {
      // A few urgent ones beside a backlog say nothing of it.
      if (fullAt !== undefined && last !== undefined && !ranks.includes(last)) return;
      last = end ?? last;
      if (isFull && fullAt !== undefined) {
        const inTime = (TURN_MS * count) / Math.max(TURN_MS, at - fullAt);
        byPace = byPace === Number.POSITIVE_INFINITY ? inTime : (1 - NEWEST) * byPace + NEWEST * inTime;
      }
      fullAt = isFull ? at : undefined;
      if (end === undefined) return;
      const lane = laneOf(end);
      if (hadEach !== undefined) {
        lane.byTenants = Math.max(1, hadEach);
        lane.shortAt = at;
      } else if (isFull && at - lane.shortAt >= LONGER_MS) lane.byTenants *= 2;
    },
  };
}

const atLeastOne = (turn: number): number => Math.max(1, Math.floor(turn));
