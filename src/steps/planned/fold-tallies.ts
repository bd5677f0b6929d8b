// Follows the feed and counts what happened: reads on from its position, adds to the tallies, and moves the position, all in one transaction. A crash
// repeats all of it or nothing. Whoever finds another at it leaves it.
//
// The first time it begins at the feed's end, and counts from the record what was there before, some at a time, while it follows. A database that was
// made with tallies has nothing from before: there it begins with the feed.

import type pg from "pg";
import { comparePositions } from "#domain/fact.ts";
import { findFeedEnd, findFeedStart } from "#record/feed-places.ts";
import { findFollower, moveFollower, startFollower } from "#record/followers.ts";
import { countRecord, foldFeed, LAST_ID, readBase, TALLIES } from "#record/tallies.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { lockAlone } from "#store/leadership.ts";

/** `isAtEnd`: nothing is left to count for now, in the feed or in the record. */
export type FoldRound = { facts: number; isAtEnd: boolean };

/** Facts are looked up one by one, whatever the planner thinks of tables that were empty a moment ago. */
const BY_INDEX = ["seqscan", "bitmapscan", "hashjoin", "mergejoin", "memoize"]
  .map((way) => `set local enable_${way} = off`)
  .join("; ");

/** Undefined when another process is at it. */
export async function foldTallies(pool: pg.Pool): Promise<FoldRound | undefined> {
  const folded = await alone(pool, followFeed);
  if (!folded?.isAtEnd || folded.hasBase) return folded;
  return alone(pool, async (tx) => ({ facts: folded.facts, isAtEnd: await countRecord(tx, await readBase(tx)) }));
}

/** `hasBase`: all that was there before has been counted. */
async function followFeed(tx: Queryable): Promise<FoldRound & { hasBase: boolean }> {
  const base = await readBase(tx);
  const hasBase = base.id === LAST_ID;
  const after = await findFollower(tx, [TALLIES]);
  if (!after) {
    await startFollower(tx, TALLIES, hasBase ? await findFeedStart(tx) : await findFeedEnd(tx));
    return { facts: 0, isAtEnd: !hasBase, hasBase };
  }
  const { facts, next, isAtEnd } = await foldFeed(tx, after, base);
  if (comparePositions(next, after) !== 0) await moveFollower(tx, TALLIES, next);
  return { facts, isAtEnd, hasBase };
}

const alone = <Value>(pool: pg.Pool, act: (tx: Queryable) => Promise<Value>): Promise<Value | undefined> =>
  inTransaction(pool, async (tx) => {
    if (!(await lockAlone(tx, TALLIES))) return undefined;
    await tx.query(BY_INDEX);
    return act(tx);
  });
