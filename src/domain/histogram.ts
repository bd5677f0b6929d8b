// How long things took, counted in places of fixed width, so that counts of many minutes can be added up and still tell a quantile.

/**
 * Where one place ends and the next begins, in milliseconds: each about four tenths wider than the one before. Never changed: what is counted is counted
 * in these.
 */
export const BOUNDS_MS: readonly number[] = [1, 10, 100, 1_000, 10_000]
  .flatMap((decade) => [1, 1.5, 2, 3, 5, 7].map((step) => step * decade))
  .concat(100_000);

/** One below the first bound, and one beyond the last. */
export const PLACES = BOUNDS_MS.length + 1;

/** Where this is counted, from 0. */
export function placeOf(ms: number): number {
  let place = 0;
  while (place < BOUNDS_MS.length && ms >= (BOUNDS_MS[place] as number)) place++;
  return place;
}

/** The value below which this part of all lies, as if each place were filled evenly; undefined where nothing was counted. */
export function quantile(counts: readonly number[], part: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let below = 0;
  for (const [place, count] of counts.entries()) {
    if (count > 0 && below + count >= part * total) {
      const from = place === 0 ? 0 : (BOUNDS_MS[place - 1] as number);
      const to = BOUNDS_MS[place] ?? from;
      return from + ((to - from) * Math.max(0, part * total - below)) / count;
    }
    below += count;
  }
  return BOUNDS_MS.at(-1);
}
