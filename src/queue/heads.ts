// Where the lanes begin, for claims in a backlog.
//
// Somebody's open transaction keeps all that was claimed since in a lane's index, and a claim that looks from the start walks past
// it. So where claims come back full, one looks from where that before it found its first. What came back to a lane or was
// committed late may be behind that: a look from the start finds it, after HEADS_MS or as soon as a claim is not full.

/** By rank. */
type Places = readonly number[];

export type Heads = {
  /** From where to look now. */
  at(now: number): Places;
  /** What a look from there at all lanes found first in each; undefined if it did not find as many as it was to. */
  found(from: Places, now: number, firsts: { readonly [rank: string]: number } | undefined): void;
};

const HEADS_MS = 200;

export function createHeads(lanes: number): Heads {
  const start: Places = Array<number>(lanes).fill(0);
  let heads = start;
  let until = 0;
  return {
    at(now) {
      if (now >= until) heads = start;
      return heads;
    },
    found(from, now, firsts) {
      if (!firsts) {
        heads = start;
        return;
      }
      if (from === start) until = now + HEADS_MS;
      // A lane in which there was nothing although a later one was reached is empty: what comes will be behind all that is there.
      const next = [...from];
      let first = 0;
      for (let rank = lanes - 1; rank >= 0; rank--) {
        first = firsts[rank] ?? first;
        next[rank] = Math.max(from[rank] ?? 0, first);
      }
      heads = next;
    },
  };
}
