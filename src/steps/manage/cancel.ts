// Cancels a notification that nobody has taken up yet.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import type { Status } from "#domain/status.ts";
import type { Queue } from "#queue/queue.ts";
import { findRecord } from "#record/notifications.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";

export type Cancellation = "cancelled" | "unknown" | { status: Status };

/** A row that is just being handed back is in neither place for our statement: look again. */
const LOOKS = 3;

export type CancelWorld = { pool: pg.Pool; queue: Pick<Queue, "cancel"> };

export async function cancel({ pool, queue }: CancelWorld, actor: KeyActor, id: string): Promise<Cancellation> {
  let status: Status = "processing";
  for (let look = 0; look < LOOKS; look++) {
    const isCancelled = await inTransaction(pool, async (tx) => {
      if (!(await queue.cancel(tx, actor.tenant, id))) return false;
      await writeAudit(tx, actor, { action: "notification.cancel", object: { kind: "notification", name: id } });
      return true;
    });
    if (isCancelled) return "cancelled";
    const record = await findRecord(pool, actor.tenant, id);
    if (!record) return "unknown";
    status = record.status;
    if (status !== "queued" && status !== "pending") break;
  }
  return { status };
}
