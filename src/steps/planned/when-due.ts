// Looks when the next is due, which costs one probe of an index, and fires what is.

import type { Next } from "#store/due.ts";

/** While another scheduler has it in hand: soon at first, then ever more rarely, until it is gone. */
const HELD_MS = 5;
const MOST_HELD_MS = 1_000;

/** `fire` does some of what is due and answers with how much; `onFired` is told when that was something. */
export function whenDue(
  next: () => Promise<Next>,
  fire: () => Promise<number>,
  onFired: () => void,
): () => Promise<Next> {
  let heldMs = HELD_MS;
  return async () => {
    const seen = await next();
    if (seen.inMs === undefined || seen.inMs > 0) {
      heldMs = HELD_MS;
      return seen;
    }
    if ((await fire()) > 0) {
      heldMs = HELD_MS;
      onFired();
      // What comes after it.
      return { ...seen, inMs: 0 };
    }
    const inMs = heldMs;
    heldMs = Math.min(MOST_HELD_MS, heldMs * 2);
    return { ...seen, inMs };
  };
}
