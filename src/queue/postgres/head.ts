// Where the flows of the lane with the backlog begin.
//
// Somebody's open transaction keeps all that was claimed since in a lane's index, and a claim that looks from the start walks past
// it. So where claims come back full, one looks into the lane in which that before it ended from where those found the first of each flow.
// What came back to this lane or was committed late may be behind that: a look from the start finds it, after HEAD_MS or as
// soon as a claim is not full. All other lanes, and flows that are new, are looked at from their start, so that priorities and turns hold.

/** `seq` is the first to look at. */
export type Head = { tenant: number; pool: number; seq: number };
export type Heads = { rank: number; heads: readonly Head[] };

export type Backlog = {
  /** From where to look now, in the order of tenants and pools; undefined is the start. */
  heads(now: number): Heads | undefined;
  /** What a look from there found first in the lane in which it ended; undefined if it was not full. Of `unasked` tenants it says nothing. */
  found(from: Heads | undefined, now: number, firsts: Heads | undefined, unasked?: readonly number[]): void;
};

const HEAD_MS = 200;
/** More flows than that are not drained one by one: each is looked at too seldom for its head to matter. */
const MOST = 200;

export function createBacklog(): Backlog {
  let rank = 0;
  let known = new Map<string, Head>();
  let until = 0;
  return {
    heads(now) {
      if (now >= until) known.clear();
      if (known.size === 0) return undefined;
      return { rank, heads: [...known.values()].sort((a, b) => a.tenant - b.tenant || a.pool - b.pool) };
    },
    found(from, now, firsts, unasked = []) {
      if (!from) until = now + HEAD_MS;
      if (!firsts) {
        const kept = new Set(unasked);
        known = new Map([...known].filter(([, { tenant }]) => kept.has(tenant)));
        return;
      }
      if (firsts.rank !== rank || known.size + firsts.heads.length > MOST) known.clear();
      rank = firsts.rank;
      if (firsts.heads.length > MOST) return;
      for (const head of firsts.heads) known.set(`${head.tenant} ${head.pool}`, head);
    },
  };
}
