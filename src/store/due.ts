// What is due, and when the next will be.
//
// Statements compare with the time at which they began: never early, and an index can be used, which a clock that moves
// while the statement runs would forbid.

import type { Queryable } from "#store/connection/database.ts";

/** What a scheduler may sleep for. In milliseconds from now; undefined where nothing waits. */
export type Outlook = {
  /** The database's clock. */
  nowMs: number;
  /** Whether something in the schedule may be claimed already. */
  hasDue: boolean;
  /** The next after now. */
  schedule: number | undefined;
  schedules: number | undefined;
  reminders: number | undefined;
  broadcasts: number | undefined;
  hasReplans: boolean;
};

type Row = {
  now: number;
  due: boolean | null;
  s: number | null;
  r: number | null;
  p: number | null;
  b: number | null;
  has: boolean;
};

/** A probe per lane and index, whatever their size. */
export async function outlook(db: Queryable): Promise<Outlook> {
  const { rows } = await db.query<Row>({
    name: "carillon-outlook",
    text: `select date_part('epoch', now) * 1000 as now, due,
        date_part('epoch', next - now) * 1000 as s,
        date_part('epoch', (select min(greatest(next_at, put_off_until)) from carillon.schedules where next_at is not null) - now) * 1000 as r,
        date_part('epoch', (select min(greatest(due_at, put_off_until)) from carillon.reminder_plan where outcome is null) - now) * 1000 as p,
        date_part('epoch', (select min(turn_at) from carillon.broadcasts) - now) * 1000 as b,
        exists (select from carillon.replans where finished_at is null and greatest(started_at, put_off_until) <= now) as has
      from (select carillon.now() as now) clock
      cross join lateral (
        select min(next) as next, bool_or(is_due) as due from unnest('{0,1,2,3}'::smallint[]) as lane
        cross join lateral (
          select (select due_at from carillon.later where priority = lane and due_at > now order by due_at limit 1) as next,
            exists (select from carillon.later where priority = lane and due_at <= now) as is_due
        ) probed
      ) lanes`,
  });
  const { now = 0, due, s, r, p, b, has = false } = rows[0] ?? {};
  return {
    nowMs: now,
    hasDue: due ?? false,
    schedule: s ?? undefined,
    schedules: r ?? undefined,
    reminders: p ?? undefined,
    broadcasts: b ?? undefined,
    hasReplans: has,
  };
}
