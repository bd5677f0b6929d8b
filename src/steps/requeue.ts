// Sends dead letters again, a batch at a time.

import type { Queryable } from "../store/database.ts";
import { countDeadLetters, type DeadLetterFilter, listDeadLetters, retryEnded } from "../store/dead-letters.ts";

export type Requeued = { matched: number; requeued: number; remaining: number };

const BATCH = 500;

/** By ids: whatever of them has ended badly goes back. */
export async function requeueIds(db: Queryable, tenant: number, ids: readonly string[]): Promise<Requeued> {
  const requeued = (await retryEnded(db, tenant, ids)).length;
  return { matched: requeued, requeued, remaining: 0 };
}

/**
 * By filter, at most `limit` of them, oldest batches last. What remains is counted, so that a caller can go on until it is
 * zero; each batch is a commit of its own, so that an interruption loses nothing.
 */
export async function requeueFiltered(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  limit: number,
): Promise<Requeued> {
  const matched = await countDeadLetters(db, tenant, filter);
  let requeued = 0;
  while (requeued < limit) {
    const letters = await listDeadLetters(db, tenant, filter, {
      beforeId: undefined,
      limit: Math.min(BATCH, limit - requeued),
    });
    if (letters.length === 0) break;
    const back = await retryEnded(
      db,
      tenant,
      letters.map(({ id }) => id),
    );
    // Somebody else is sending the same ones again: leave it to them.
    if (back.length === 0) break;
    requeued += back.length;
  }
  return { matched, requeued, remaining: Math.max(0, matched - requeued) };
}
