// Gives a notification that waits another time, expiry or priority.

import { type Priority, priorityOf } from "#domain/priority.ts";
import type { Status } from "#domain/status.ts";
import type { Queryable } from "#store/connection/database.ts";

export type Change = { dueAt?: string; expiresAt?: string | null; rank?: number };

export type Rescheduled =
  | { kind: "unknown" }
  /** It is too late: somebody has taken it up, or it has ended. */
  | { kind: "over"; status: Status }
  | { kind: "refused"; reason: string }
  | { kind: "done"; status: Status; priority: Priority; dueAt: Date | null; expiresAt: Date | null };

type Row = {
  status: Status | null;
  is_done: boolean;
  refusal: string | null;
  due_at: Date | null;
  expires_at: Date | null;
  priority: number;
};

export async function reschedule(db: Queryable, tenant: number, id: string, change: Change): Promise<Rescheduled> {
  const { rows } = await db.query<Row>({
    name: "carillon-reschedule",
    text: "select * from carillon.reschedule($1, $2, $3, $4, $5, $6)",
    values: [
      tenant,
      id,
      change.dueAt ?? null,
      change.expiresAt ?? null,
      change.expiresAt === null,
      change.rank ?? null,
    ],
  });
  const row = rows[0];
  if (!row || row.status === null) return { kind: "unknown" };
  if (row.refusal !== null) return { kind: "refused", reason: row.refusal };
  if (!row.is_done) return { kind: "over", status: row.status };
  return {
    kind: "done",
    status: row.status,
    priority: priorityOf(row.priority),
    dueAt: row.due_at,
    expiresAt: row.expires_at,
  };
}
