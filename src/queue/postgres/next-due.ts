// When the next of what waits for its time is due: a probe per lane, however much waits.
//
// Compared with the time at which the statement began: never early, and an index can be used, which a clock that moves
// while it runs would forbid.

import type { NextDue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";

const IS_OPEN = `(tenant = any (tenants)) is not true
  and (pool > 0 and pool % 16 = any (array(select carillon.queue_pool(c, 0::smallint) from unnest(channels) c))) is not true`;
const NEXT_DUE = `
  with paused as materialized (
    select array_agg(name) filter (where kind = 'lane') as lanes, array_agg(name) filter (where kind = 'channel') as channels,
      array_agg((select t.id from carillon.tenants t where t.name = p.name)) filter (where kind = 'tenant') as tenants,
      min(until) as ends_at
    from carillon.pauses p where until is null or until > carillon.now()
  )
  select ${ms("now")} as "nowMs", "hasDue", ${ms("(least(next, ends_at) - now)")} as "inMs"
  from (select carillon.now() as now) clock
  cross join paused
  cross join lateral (
    select min(next) as next, bool_or(is_due) as "hasDue" from unnest('{0,1,2,3}'::smallint[], '{urgent,high,normal,low}'::text[]) as l(lane, name)
    cross join lateral (
      select (select due_at from carillon.later where priority = lane and due_at > now and ${IS_OPEN} order by due_at limit 1) as next,
        exists (select from carillon.later where priority = lane and due_at <= now and ${IS_OPEN}) as is_due
    ) probed
    where (name = any (lanes)) is not true
  ) lanes`;

export async function nextDue(db: Queryable): Promise<NextDue> {
  const { rows } = await db.query<{ nowMs: number; hasDue: boolean | null; inMs: number | null }>({
    name: "carillon-next-due",
    text: NEXT_DUE,
  });
  const { nowMs = 0, hasDue, inMs } = rows[0] ?? {};
  return { nowMs, hasDue: hasDue ?? false, inMs: inMs ?? undefined };
}
