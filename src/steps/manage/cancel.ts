// Cancels a notification that nobody has taken up yet.

import type { KeyActor } from "#domain/actor.ts";
import type { Status } from "#domain/status.ts";
import type { Queue } from "#queue/queue.ts";
import { findRecord } from "#record/notifications.ts";
import type { Queryable } from "#store/connection/database.ts";

export type Cancellation = "cancelled" | "unknown" | { status: Status };

/** A row that is just being handed back is in neither place for our statement: look again. */
const LOOKS = 3;

export type CancelWorld = { db: Queryable; queue: Pick<Queue, "cancel"> };

export async function cancel({ db, queue }: CancelWorld, { tenant }: KeyActor, id: string): Promise<Cancellation> {
  let status: Status = "processing";
  for (let look = 0; look < LOOKS; look++) {
    if (await queue.cancel(db, tenant, id)) return "cancelled";
    const record = await findRecord(db, tenant, id);
    if (!record) return "unknown";
    status = record.status;
    if (status !== "queued" && status !== "pending") break;
  }
  return { status };
}
