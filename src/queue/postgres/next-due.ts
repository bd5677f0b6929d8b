// When the next of what waits for its time is due: a probe per lane, however much waits. While a channel or a tenant is paused, a probe for
// each flow instead, of ten thousand tenants at most, so that what is paused is not walked past.
//
// Compared with the time at which the statement began: never early, and an index can be used, which a clock that moves
// while it runs would forbid. Callbacks are left out: whoever carries them looks by itself, and nobody else is woken for them.

import { CALLBACK_RANK } from "#domain/priority.ts";
import type { NextDue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";

const NEXT_DUE = `
  select ${ms("now")} as "nowMs", "hasDue", ${ms("(least(next, ends_at) - now)")} as "inMs"
  from (
    select carillon.now() as now, asked.*, (asked.bounds).channels is not null or (asked.bounds).not_tenants <> '{}' as has_pauses,
      (select min(until) from carillon.pauses where until > carillon.now()) as ends_at
    from carillon.queue_open(null, null, '{}', null) asked
  ) asked
  cross join lateral (
    select min(next) as next, bool_or(is_due) as "hasDue" from unnest(asked.lanes) as lane
    cross join lateral (
      select (select due_at from carillon.later where priority = lane and due_at > now order by due_at limit 1) as next,
        exists (select from carillon.later where priority = lane and due_at <= now) as is_due
      where not has_pauses
      union all
      select (select due_at from carillon.later where priority = lane and tenant = f.tenant and pool = f.pool and due_at > now
          order by due_at limit 1),
        exists (select from carillon.later where priority = lane and tenant = f.tenant and pool = f.pool and due_at <= now)
      from carillon.queue_flows_of(true, lane, 1, 10000, asked.bounds, null, null, null) f where has_pauses
    ) probed where lane < ${CALLBACK_RANK}
  ) lanes`;

export async function nextDue(db: Queryable): Promise<NextDue> {
  const { rows } = await db.query<{ nowMs: number; hasDue: boolean | null; inMs: number | null }>({
    name: "carillon-next-due",
    text: NEXT_DUE,
  });
  const { nowMs = 0, hasDue, inMs } = rows[0] ?? {};
  return { nowMs, hasDue: hasDue ?? false, inMs: inMs ?? undefined };
}
