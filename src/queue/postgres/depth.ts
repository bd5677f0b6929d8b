// How much waits, and since when.

import { CALLBACK_RANK, PRIORITIES, type Priority } from "#domain/priority.ts";
import type { Depth, Figures } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";

// What was accepted or due first, of each lane: of what is ready, a probe for each flow of its first thousand tenants (`offset 0`: a join
// would walk through the table).
const oldestAge = (isAsked: string, tenants: string, isHanded: string) => `
  (select coalesce(${ms("(carillon.now() - min(since))")}, 0)
   from generate_series(0, 3) as lane, lateral (
     select (select accepted_at from carillon.notifications n where n.tenant = r.tenant and n.id = r.id) as since
     from (
       select r.tenant, r.id from carillon.queue_flows_of(false, lane::smallint, 1, 1000, row(null, ${tenants}, null, null), null, null, null) f,
         lateral (select * from carillon.ready r where r.priority = lane and r.tenant = f.tenant and r.pool = f.pool and r.seq = f.head offset 0) r
       order by f.head limit 1
     ) r
     union all
     (select due_at from carillon.later where priority = lane and due_at <= carillon.now() and ${isAsked} order by due_at limit 1)
     union all
     (select handed_at from carillon.handoffs where priority = lane and ${isHanded} order by number limit 1)
   ) first) as "oldestAgeMs"`;

// Without looking at what they hold.
const HANDED =
  "coalesce((select sum(length(done) - bit_count(done))::int from carillon.handoffs where priority = lane), 0)";

const HANDED_OF_ONE =
  "(select count(*)::int from carillon.queue_handed_flows h where h.priority = lane and h.tenant = $1)";

// Of all is of all tenants: callbacks are of theirs under a minus, and have figures of their own.
const IS_ASKED = "case when $1::int is null then tenant > 0 else tenant = $1 end";
const DEPTH = `
  select
    array(select (select count(*)::int from carillon.ready where priority = lane and ${IS_ASKED})
        + (select count(*)::int from carillon.later where priority = lane and due_at <= carillon.now() and ${IS_ASKED})
        + case when $1::int is null then ${HANDED} else ${HANDED_OF_ONE} end
      from generate_series(0, 3) as lane) as depth,
    (select count(*)::int from carillon.leased where ${IS_ASKED}) as processing,
    (select count(*)::int from carillon.later where due_at > carillon.now() and ${IS_ASKED}) as scheduled,
    ${oldestAge(IS_ASKED, "case when $1 is not null then array[$1] end", "($1 is null or $1 = any (tenants))")}`;

export async function depth(db: Queryable, tenant?: number): Promise<Depth> {
  const { rows } = await db.query<{ depth: number[]; processing: number; scheduled: number; oldestAgeMs: number }>({
    name: "carillon-depth",
    text: DEPTH,
    values: [tenant ?? null],
  });
  const { depth = [], processing = 0, scheduled = 0, oldestAgeMs = 0 } = rows[0] ?? {};
  return { depth: byLane(depth), processing, scheduled, oldestAgeMs: Math.max(0, Math.round(oldestAgeMs)) };
}

// In the order of their indexes, as in depth-of.ts.
const FIGURES = `
  select
    array(select (select count(*)::int from (
        (select from carillon.ready where priority = lane order by tenant, pool, seq limit 10000)
        union all
        (select from carillon.later where priority = lane and due_at <= carillon.now() order by due_at limit 10000)
        limit 10000
      ) counted) + least(10000, ${HANDED}) from generate_series(0, 3) as lane) as depth,
    ${oldestAge("true", "null", "true")}`;

export async function figures(db: Queryable): Promise<Figures> {
  const { rows } = await db.query<{ depth: number[]; oldestAgeMs: number }>({
    name: "carillon-figures",
    text: FIGURES,
  });
  const { depth = [], oldestAgeMs = 0 } = rows[0] ?? {};
  return { depth: byLane(depth), oldestAgeMs: Math.max(0, oldestAgeMs) };
}

const byLane = (counts: readonly number[]) =>
  Object.fromEntries(PRIORITIES.map((lane, rank) => [lane, counts[rank] ?? 0])) as { [lane in Priority]: number };

export async function hasReady(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ waits: boolean }>(
    `select exists (select from carillon.ready where priority < ${CALLBACK_RANK}) or exists (select from carillon.handoffs) as waits`,
  );
  return rows[0]?.waits ?? false;
}

/** Callbacks that may be claimed: up to 10,000 counted. */
export async function waitingCallbacks(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ n: number }>({
    name: "carillon-waiting-callbacks",
    text: `select count(*)::int as n from (
        select from carillon.ready where priority = ${CALLBACK_RANK}
        union all
        select from carillon.later where priority = ${CALLBACK_RANK} and due_at <= carillon.now()
        limit 10000
      ) counted`,
  });
  return rows[0]?.n ?? 0;
}
