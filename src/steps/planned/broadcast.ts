// A notice that is too large for one transaction: kept as it was when its time came, and accepted chunk by chunk.
//
// Each chunk is a transaction that also notes how far it came, so a crash loses and doubles nothing. After a chunk the next one
// waits for its turn: what others have to fire comes in between.

import { chunkOf, recipientsOf } from "#domain/notice.ts";
import { acceptEach, summaryOf } from "#steps/walk/accept.ts";
import { advanceBroadcast, dueBroadcasts, putOffBroadcast, takeBroadcast } from "#store/broadcasts.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { type Firing, fireAlone, MOST_FAILURES } from "./fire.ts";

/** One chunk for every tenant that has a broadcast under way; returns how many chunks it sent or put off. */
export async function continueBroadcasts(firing: Firing): Promise<number> {
  const { pool } = firing;
  let done = 0;
  for (const { id, tenant } of await dueBroadcasts(pool)) {
    if (firing.isStopping()) break;
    const wasOurs = await fireAlone(
      firing,
      { tenant, name: `broadcast ${id}` },
      () => inTransaction(pool, (tx) => sendChunk(tx, firing, id)),
      async (error) => {
        if ((await putOffBroadcast(pool, id)) < MOST_FAILURES) return;
        await advanceBroadcast(pool, id, { done: 0, notifications: [], error, isOver: true });
      },
    );
    if (wasOurs !== false) done += 1;
  }
  return done;
}

async function sendChunk(tx: Queryable, { acceptWithin, chunkBytes }: Firing, id: string): Promise<boolean> {
  const broadcast = await takeBroadcast(tx, id);
  if (!broadcast) return false;
  const { tenant, notice, expiresAt, reached } = broadcast;
  const requests = chunkOf(notice, reached, chunkBytes);
  const until = expiresAt ? { expiresAt: expiresAt.toISOString() } : {};
  const outcomes = await acceptEach(
    tx,
    acceptWithin,
    tenant,
    requests.map((request) => ({ ...request, ...until })),
  );
  const isOver = reached + requests.length >= recipientsOf(notice);
  await advanceBroadcast(tx, id, { ...summaryOf(outcomes), done: requests.length, isOver });
  return true;
}
