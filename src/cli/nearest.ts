// What somebody may have meant: the known word with the fewest slips between.

/** More slips than a third of the letters make another word. */
const mostSlips = (word: string): number => Math.max(1, Math.floor(word.length / 3));

export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = mostSlips(word) + 1;
  for (const one of known) {
    // Who stops in the middle of a word means that word.
    const slips = word.length > 2 && one.startsWith(word) ? 0 : slipsBetween(word, one);
    if (slips < least) [best, least] = [one, slips];
  }
  return best;
}

/** Letters left out, put in or changed, and neighbours that were swapped. */
export function slipsBetween(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let least = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    [before, above] = [above, row];
  }
  return above[b.length] ?? 0;
}
