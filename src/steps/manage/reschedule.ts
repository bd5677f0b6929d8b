// Gives a notification that waits another time, expiry or priority.

import type { KeyActor } from "#domain/actor.ts";
import type { Change, Moved, Queue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";

export type RescheduleWorld = {
  db: Queryable;
  queue: Pick<Queue, "move">;
  now: () => Date;
  /** Something was put into the queue. */
  wake: () => void;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export async function reschedule(
  { db, queue, now, wake, plan }: RescheduleWorld,
  { tenant }: KeyActor,
  id: string,
  change: Change,
): Promise<Moved> {
  const outcome = await queue.move(db, tenant, id, change);
  if (outcome.kind !== "done") return outcome;
  if (outcome.dueAt && outcome.dueAt > now()) plan(outcome.dueAt.getTime());
  else wake();
  return outcome;
}
