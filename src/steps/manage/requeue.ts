// Sends dead letters again, a batch at a time.
//
// There may be millions, so nobody counts them all: a call looks at so many at most, and says where to go on.

import type { KeyActor } from "#domain/actor.ts";
import { countEnded, type DeadLetterFilter, findDeadLetters } from "#record/dead-letters.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { RetryWorld } from "./retry.ts";

/** By ids: whatever of them has ended badly. By filter, the newest first, from before `beforeId` on, at most `limit`. */
export type Which =
  | { ids: readonly string[] }
  | { filter: DeadLetterFilter; beforeId: string | undefined; limit: number };
/** `remaining` is what was seen beyond those that were requeued; `nextId`, if there is more, is where to go on. */
export type Requeued = { matched: number; requeued: number; remaining: number; nextId: string | undefined };
type Seen = { matched: number; nextId: string | undefined };

const BATCH = 1_000;
/** Looked at in a call; as many again are counted ahead. */
const MAX_LOOKED = 10_000;

export async function requeue(world: RetryWorld, { tenant }: KeyActor, which: Which): Promise<Requeued> {
  const done = await ("ids" in which
    ? requeueIds(world, tenant, which.ids)
    : requeueFiltered(world, tenant, which.filter, which));
  if (done.requeued > 0) world.wake();
  return done;
}

/** What requeue would do. */
export function countRequeued(db: Queryable, tenant: number, which: Which): Promise<Requeued> {
  return "ids" in which ? countIds(db, tenant, which.ids) : countFiltered(db, tenant, which.filter, which);
}

async function requeueIds({ db, queue }: RetryWorld, tenant: number, ids: readonly string[]): Promise<Requeued> {
  const requeued = (await queue.retry(db, tenant, ids)).length;
  return { matched: requeued, requeued, remaining: 0, nextId: undefined };
}

async function countIds(db: Queryable, tenant: number, ids: readonly string[]): Promise<Requeued> {
  const matched = await countEnded(db, tenant, ids);
  return { matched, requeued: 0, remaining: matched, nextId: undefined };
}

/** Each batch is a commit of its own, so that an interruption loses nothing. */
async function requeueFiltered(
  { db, queue }: RetryWorld,
  tenant: number,
  filter: DeadLetterFilter,
  { beforeId, limit }: { beforeId: string | undefined; limit: number },
): Promise<Requeued> {
  let requeued = 0;
  let nextId = beforeId;
  for (let looked = 0; looked < MAX_LOOKED && requeued < limit; looked += BATCH) {
    const most = Math.min(BATCH, limit - requeued);
    const page = await findDeadLetters(db, tenant, filter, { beforeId: nextId, limit: most, maxScanned: BATCH });
    const ids = page.letters.map(({ id }) => id);
    // Fewer go back where somebody else is sending the same ones again.
    if (ids.length > 0) requeued += (await queue.retry(db, tenant, ids)).length;
    nextId = page.nextId;
    if (nextId === undefined) return { matched: requeued, requeued, remaining: 0, nextId };
  }
  const ahead = await lookAhead(db, tenant, filter, nextId);
  const isOver = ahead.matched === 0 && ahead.nextId === undefined;
  return {
    matched: requeued + ahead.matched,
    requeued,
    remaining: ahead.matched,
    nextId: isOver ? undefined : nextId,
  };
}

async function countFiltered(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  { beforeId }: { beforeId: string | undefined },
): Promise<Requeued> {
  const { matched, nextId } = await lookAhead(db, tenant, filter, beforeId);
  return { matched, requeued: 0, remaining: matched, nextId };
}

async function lookAhead(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  beforeId: string | undefined,
): Promise<Seen> {
  let matched = 0;
  let nextId = beforeId;
  for (let looked = 0; looked < MAX_LOOKED; looked += BATCH) {
    // One more than there can be: a page is never full.
    const place = { beforeId: nextId, limit: BATCH + 1, maxScanned: BATCH };
    const page = await findDeadLetters(db, tenant, filter, place);
    matched += page.letters.length;
    nextId = page.nextId;
    if (nextId === undefined) break;
  }
  return { matched, nextId };
}
