// Sends a notification again that has ended without being sent.

import type { KeyActor } from "#domain/actor.ts";
import { Problem } from "#domain/problems.ts";
import type { Queue } from "#queue/queue.ts";
import { findRecord } from "#record/notifications.ts";
import type { Queryable } from "#store/connection/database.ts";

export type RetryWorld = {
  db: Queryable;
  queue: Pick<Queue, "retry">;
  /** Something was put into the queue. */
  wake: () => void;
};

/** It goes back to its lane with a fresh budget of attempts. */
export async function retry(
  { db, queue, wake }: RetryWorld,
  { tenant }: KeyActor,
  id: string,
): Promise<Problem | undefined> {
  const [back] = await queue.retry(db, tenant, [id]);
  if (back !== undefined) {
    wake();
    return undefined;
  }
  const record = await findRecord(db, tenant, id);
  return record
    ? new Problem("NOT_RETRYABLE", `the notification is ${record.status}`)
    : new Problem("NOT_FOUND", `there is no notification ${id}`);
}
