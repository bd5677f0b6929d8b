// Sends a notification again that has ended without being sent.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { Problem } from "#domain/problems.ts";
import type { Queue } from "#queue/queue.ts";
import { findRecord } from "#record/notifications.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";

export type RetryWorld = {
  pool: pg.Pool;
  queue: Pick<Queue, "retry">;
  /** Something was put into the queue. */
  wake: () => void;
};

const RETRYABLE: ReadonlySet<string> = new Set(["failed", "ambiguous", "expired", "cancelled"]);
const KEPT = ", and was forgotten or brought back from the archive: it is not sent again";

/** It goes back to its lane with a fresh budget of attempts. */
export async function retry(
  { pool, queue, wake }: RetryWorld,
  actor: KeyActor,
  id: string,
): Promise<Problem | undefined> {
  const isBack = await inTransaction(pool, async (tx) => {
    if ((await queue.retry(tx, actor.tenant, [id])).length === 0) return false;
    await writeAudit(tx, actor, { action: "notification.retry", object: { kind: "notification", name: id } });
    return true;
  });
  if (isBack) {
    wake();
    return undefined;
  }
  const record = await findRecord(pool, actor.tenant, id);
  return record
    ? new Problem("NOT_RETRYABLE", `the notification is ${record.status}${RETRYABLE.has(record.status) ? KEPT : ""}`)
    : new Problem("NOT_FOUND", `there is no notification ${id}`);
}
