// Sends dead letters again, a batch at a time.
//
// There may be millions, so nobody counts them all: a call looks at so many at most, and says where to go on.

import type { KeyActor } from "#domain/actor.ts";
import type { Deed, Fields } from "#domain/audit.ts";
import { countEnded, type DeadLetterFilter, findDeadLetters } from "#record/dead-letters.ts";
import { type AuditPlace, amendAudit, writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import type { RetryWorld } from "./retry.ts";

/**
 * By ids: whatever of them has ended badly. By filter, the newest first, from before `beforeId` on, at most `limit`. Notifications, or the
 * callbacks about them.
 */
export type Which = { of?: "callbacks" } & (
  | { ids: readonly string[] }
  | { filter: DeadLetterFilter; beforeId: string | undefined; limit: number }
);
/** `remaining` is what was seen beyond those that were requeued; `nextId`, if there is more, is where to go on. */
export type Requeued = { matched: number; requeued: number; remaining: number; nextId: string | undefined };
type Seen = { matched: number; nextId: string | undefined };

/** In one call. */
export const MAX_REQUEUE = 10_000;
const BATCH = 1_000;
/** Looked at in a call; as many again are counted ahead. */
const MAX_LOOKED = 10_000;

export async function requeue(world: RetryWorld, actor: KeyActor, which: Which): Promise<Requeued> {
  const send = sender(world, actor, which);
  const done = await ("ids" in which
    ? requeueIds(send, which.ids)
    : requeueFiltered(world.pool, send, tenantOf(actor, which), which.filter, which));
  if (done.requeued > 0) world.wake();
  return done;
}

/** In the record, callbacks are of their tenant's number with a minus. */
const tenantOf = ({ tenant }: KeyActor, { of }: Which): number => (of === "callbacks" ? -tenant : tenant);

/** What requeue would do. */
export function countRequeued(db: Queryable, actor: KeyActor, which: Which): Promise<Requeued> {
  const tenant = tenantOf(actor, which);
  return "ids" in which ? countIds(db, tenant, which.ids) : countFiltered(db, tenant, which.filter, which);
}

/** Sends these again, in a transaction of their own; answers with how many. */
type Send = (ids: readonly string[]) => Promise<number>;

/** However many batches it takes, the audit log has one line of it, which tells with each how many there were so far. */
function sender({ pool, queue }: RetryWorld, actor: KeyActor, which: Which): Send {
  let requeued = 0;
  let line: AuditPlace | undefined;
  return (ids) =>
    inTransaction(pool, async (tx) => {
      const { length } = await queue.retry(tx, tenantOf(actor, which), ids);
      if (length === 0) return 0;
      requeued += length;
      if (line) await amendAudit(tx, line, { requeued });
      else line = await writeAudit(tx, actor, deedOf(which, { requeued }));
      return length;
    });
}

function deedOf(which: Which, done: Fields): Deed {
  const kind = which.of === "callbacks" ? "callback-dead-letters" : "dead-letters";
  const deed = { action: `${kind}.requeue`, object: { kind } } as const;
  if ("ids" in which) return { ...deed, after: { ids: which.ids, ...done } };
  const { userId: about, ...filter } = which.filter;
  // Theirs is no person.
  if (which.of === "callbacks") return { ...deed, after: { filter: known({ endpoint: about, ...filter }), ...done } };
  return { ...deed, after: { filter, ...done }, ...(about !== undefined && { about }) };
}

const known = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

async function requeueIds(send: Send, ids: readonly string[]): Promise<Requeued> {
  const requeued = await send(ids);
  return { matched: requeued, requeued, remaining: 0, nextId: undefined };
}

async function countIds(db: Queryable, tenant: number, ids: readonly string[]): Promise<Requeued> {
  const matched = await countEnded(db, tenant, ids);
  return { matched, requeued: 0, remaining: matched, nextId: undefined };
}

/** Each batch is a commit of its own, so that an interruption loses nothing. */
async function requeueFiltered(
  db: Queryable,
  send: Send,
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
    if (ids.length > 0) requeued += await send(ids);
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
