// When the next of what waits for its time is due: a probe per lane, however much waits.
//
// Compared with the time at which the statement began: never early, and an index can be used, which a clock that moves
// while it runs would forbid.

import type { NextDue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";

const NEXT_DUE = `
  select ${ms("now")} as "nowMs", "hasDue", ${ms("(next - now)")} as "inMs"
  from (select carillon.now() as now) clock
  cross join lateral (
    select min(next) as next, bool_or(is_due) as "hasDue" from unnest('{0,1,2,3}'::smallint[]) as lane
    cross join lateral (
      select (select due_at from carillon.later where priority = lane and due_at > now order by due_at limit 1) as next,
        exists (select from carillon.later where priority = lane and due_at <= now) as is_due
    ) probed
    where lane <> all (array(select priority from carillon.queue_pauses))
  ) lanes`;

export async function nextDue(db: Queryable): Promise<NextDue> {
  const { rows } = await db.query<{ nowMs: number; hasDue: boolean | null; inMs: number | null }>({
    name: "carillon-next-due",
    text: NEXT_DUE,
  });
  const { nowMs = 0, hasDue, inMs } = rows[0] ?? {};
  return { nowMs, hasDue: hasDue ?? false, inMs: inMs ?? undefined };
}
