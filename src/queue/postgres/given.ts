// What an engine gave, as the claim asks for it, and what of it was left.

import { type Entry, partOf } from "#queue/engine.ts";

/** More than any commit has: an engine may say anything. */
const MOST_PLACES = 1_000_000;
const [ZERO, ONE] = [48, 49];

const isPossible = ({ handoff, place, count }: Entry): boolean =>
  Number.isSafeInteger(handoff) && place >= 0 && count > 0 && place + count <= MOST_PLACES;

/** Handoffs, and of each the bits of what was given. */
export function bitsOf(entries: readonly Entry[]): [numbers: number[], bits: string[]] {
  const given = new Map<number, Entry[]>();
  for (const entry of entries.filter(isPossible)) {
    const known = given.get(entry.handoff);
    if (known) known.push(entry);
    else given.set(entry.handoff, [entry]);
  }
  const bits = [...given.values()].map((some) => {
    const written = Buffer.alloc(Math.max(...some.map(({ place, count }) => place + count)), ZERO);
    for (const { place, count } of some) written.fill(ONE, place, place + count);
    return written.toString("latin1");
  });
  return [[...given.keys()], bits];
}

/** Those of the entries that are left, by handoff and bit; an entry that is left whole is the same. */
export function leftOf(entries: readonly Entry[], left: readonly (readonly [number, number])[]): Entry[] {
  const places = new Map<number, Set<number>>();
  for (const [handoff, place] of left) {
    const known = places.get(handoff);
    if (known) known.add(place);
    else places.set(handoff, new Set([place]));
  }
  return entries.filter(isPossible).flatMap((entry) => {
    const mine = places.get(entry.handoff);
    if (!mine) return [];
    const parts: Entry[] = [];
    for (let n = 0; n < entry.count; n++) {
      const from = n;
      while (n < entry.count && mine.has(entry.place + n)) n++;
      if (n > from) parts.push(partOf(entry, from, n - from));
    }
    return parts;
  });
}
