// What is due, and when the next will be.
//
// Statements compare with the time at which they began: never early, and an index can be used, which a clock that moves
// while the statement runs would forbid.

import type { Queryable } from "./database.ts";

/** One statement, so that a row is in one place or the other. Several may run at once: each row is moved once. */
export async function moveDue(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query({
    name: "carillon-due",
    text: `with due as materialized (
        select ctid as place, seq, priority, tenant, id, attempt, expires_at from carillon.schedule
        where due_at <= statement_timestamp() order by due_at limit $1 for update skip locked
      ), gone as (
        delete from carillon.schedule where ctid = any (array(select place from due))
      )
      insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
      select priority, seq, tenant, id, attempt, expires_at from due order by seq`,
    values: [limit],
  });
  return rowCount ?? 0;
}

/** What a scheduler may sleep for. In milliseconds from now; undefined where nothing waits. */
export type Outlook = {
  /** The database's clock. */
  nowMs: number;
  schedule: number | undefined;
  recurrences: number | undefined;
  reminders: number | undefined;
  hasReplans: boolean;
};

/** One probe per index, whatever their size. */
export async function outlook(db: Queryable): Promise<Outlook> {
  const { rows } = await db.query<{ now: number; s: number | null; r: number | null; p: number | null; has: boolean }>({
    name: "carillon-outlook",
    text: `select date_part('epoch', now) * 1000 as now,
        date_part('epoch', (select min(due_at) from carillon.schedule) - now) * 1000 as s,
        date_part('epoch', (select min(next_at) from carillon.recurrences where next_at is not null) - now) * 1000 as r,
        date_part('epoch', (select min(due_at) from carillon.reminder_plan where outcome is null) - now) * 1000 as p,
        exists (select from carillon.replans where finished_at is null) as has
      from (select statement_timestamp() as now) clock`,
  });
  const { now = 0, s, r, p, has = false } = rows[0] ?? {};
  return {
    nowMs: now,
    schedule: s ?? undefined,
    recurrences: r ?? undefined,
    reminders: p ?? undefined,
    hasReplans: has,
  };
}
