// Keeps those apart whose idempotency key an open transaction holds, so that nobody else waits for it.
//
// A shared commit has hardly any patience for a key. What it could not store goes into commits of its own, which wait for a
// while; whoever then still finds the key held is told so. The next request with that key goes there at once.

import { Problem } from "#domain/problems.ts";
import type { GroupCommit } from "#timing/group-commit.ts";

/** Not stored: somebody's open transaction holds the key. */
export const HELD = Symbol("held");
export type Kept<Result> = Result | typeof HELD;

export type ApartOptions<Row, Result> = {
  shared: GroupCommit<Row, Kept<Result>>;
  apart: GroupCommit<Row, Kept<Result>>;
  bytesOf: (row: Row) => number;
  /** The key as it is told from all others; undefined if the row has none. */
  keyOf: (row: Row) => string | undefined;
};

/** A key that nobody asks for again is forgotten when so many others were held since. */
const MAX_KNOWN = 10_000;

/** Stores rows; undefined if too many wait already. */
export function createApart<Row, Result>({ shared, apart, bytesOf, keyOf }: ApartOptions<Row, Result>) {
  const known = new Set<string>();

  function note(row: Row, isHeld: boolean): void {
    const key = keyOf(row);
    if (key === undefined) return;
    known.delete(key);
    if (!isHeld) return;
    known.add(key);
    const [oldest] = known;
    if (oldest !== undefined && known.size > MAX_KNOWN) known.delete(oldest);
  }

  async function storeApart(rows: Row[]): Promise<(Result | Problem)[]> {
    try {
      const kept = (await apart.submit(rows, sizeOf(rows))) ?? rows.map(() => HELD);
      return kept.map((outcome, n) => {
        note(rows[n] as Row, outcome === HELD);
        return outcome === HELD ? inProgress() : outcome;
      });
    } catch (error) {
      // The others of the same call may have been stored by now: this is what became of these.
      if (error instanceof Problem) return rows.map(() => error);
      throw error;
    }
  }

  const sizeOf = (rows: readonly Row[]) => rows.reduce((sum, row) => sum + bytesOf(row), 0);
  const isKnown = (row: Row) => known.has(keyOf(row) ?? "");

  return (rows: Row[]): Promise<(Result | Problem)[]> | undefined => {
    const free = known.size === 0 ? rows : rows.filter((row) => !isKnown(row));
    const answer = free.length === 0 ? Promise.resolve([]) : shared.submit(free, sizeOf(free));
    return answer?.then(async (outcomes) => {
      if (free.length === rows.length && !outcomes.includes(HELD)) return outcomes as Result[];
      const stored = new Map(free.map((row, n) => [row, outcomes[n] as Kept<Result>]));
      const held = rows.filter((row) => (stored.get(row) ?? HELD) === HELD);
      for (const row of held) note(row, true);
      const later = new Map((await storeApart(held)).map((outcome, n) => [held[n] as Row, outcome]));
      return rows.map((row) => later.get(row) ?? (stored.get(row) as Result));
    });
  };
}

function inProgress(): Problem {
  const detail = "an open transaction holds this idempotency key; ask again when it has ended";
  return new Problem("IDEMPOTENCY_IN_PROGRESS", detail, { retryAfterSeconds: 1 });
}
