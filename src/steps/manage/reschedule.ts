// Gives a notification that waits another time, expiry or priority.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import type { Priority } from "#domain/priority.ts";
import type { Change, Moved, Queue } from "#queue/queue.ts";
import { findRecord } from "#record/notifications.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";

export type RescheduleWorld = {
  pool: pg.Pool;
  queue: Pick<Queue, "move">;
  now: () => Date;
  /** Something was put into the queue. */
  wake: () => void;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export async function reschedule(
  { pool, queue, now, wake, plan }: RescheduleWorld,
  actor: KeyActor,
  id: string,
  change: Change,
): Promise<Moved> {
  const outcome = await inTransaction(pool, async (tx) => {
    const known = await findRecord(tx, actor.tenant, id);
    const moved = await queue.move(tx, actor.tenant, id, change);
    if (moved.kind !== "done") return moved;
    const object = { kind: "notification", name: id };
    const before = known && { before: shown(known) };
    await writeAudit(tx, actor, { action: "notification.reschedule", object, ...before, after: shown(moved) });
    return moved;
  });
  if (outcome.kind !== "done") return outcome;
  if (outcome.dueAt && outcome.dueAt > now()) plan(outcome.dueAt.getTime());
  else wake();
  return outcome;
}

type When = { dueAt: Date | null; expiresAt: Date | null; priority: Priority };
const shown = ({ dueAt, expiresAt, priority }: When) => ({ scheduledFor: dueAt, expiresAt, priority });
