// How much of one tenant's waits, counted no further than asked: it costs no more however much waits, of this tenant or of others.

import { PRIORITIES, type Priority } from "#domain/priority.ts";
import type { LaneDepths } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";

/** Looked through: each may hold a thousand, of whomever. */
const MOST_HANDOFFS = 1_000;

// What is for later is in the order of its time within a flow: so flow by flow, however much is not due yet.
const later = (when: string) => `
  select from flows f cross join lateral (
    select from carillon.later x
    where x.priority = f.lane and x.tenant = $1 and x.pool = f.pool and x.due_at ${when} carillon.now() offset 0
  ) due where f.lane = lanes.n`;
const HANDED = `
  select from handoffs h cross join lateral generate_series(1, length(h.done)) as place
  where h.priority = lanes.n and $1 = any (h.tenants) and coalesce(h.tenants[place], h.tenants[1]) = $1 and get_bit(h.done, place - 1) = 0`;
// In the order of its index: else a planner that expects to find enough of them soon walks through the whole table for a lane that has none.
const READY =
  "(select from carillon.ready where priority = lanes.n and tenant = $1 order by pool, seq limit $2::integer + 1)";
const upTo = (rows: string) => `
  array(select (select count(*)::int from (${rows} limit $2::integer + 1) counted) from generate_series(0, 3) as lanes(n) order by n)`;

const DEPTH = `
  with flows as materialized (
    select lanes.n as lane, f.pool from generate_series(0, 3) as lanes(n)
    cross join lateral carillon.queue_flows_of(true, lanes.n::smallint, $1, 1, row(null, array[$1::integer], null, null), null, null, null) f
  ), handoffs as materialized (
    select priority, handed_at, done, tenants[1:] as tenants from carillon.handoffs order by number limit ${MOST_HANDOFFS + 1}
  ), oldest as (
    select (select n.accepted_at from carillon.notifications n where n.tenant = $1 and n.id = r.id) as since
    from generate_series(0, 3) as lanes(n)
    cross join lateral carillon.queue_flows_of(false, lanes.n::smallint, $1, 1, row(null, array[$1::integer], null, null), null, null, null) f
    cross join lateral (
      select x.id from carillon.ready x where x.priority = lanes.n and x.tenant = $1 and x.pool = f.pool and x.seq = f.head offset 0
    ) r
    union all
    select (select x.due_at from carillon.later x where x.priority = f.lane and x.tenant = $1 and x.pool = f.pool and x.due_at <= carillon.now()
      order by x.due_at limit 1) from flows f
    union all
    select h.handed_at from handoffs h where $1 = any (h.tenants)
  )
  select
    ${upTo(`${READY} union all ${later("<=")} union all ${HANDED}`)} as queued,
    ${upTo(later(">"))} as scheduled,
    ${upTo("select from carillon.leased h where h.tenant = $1 and h.priority = lanes.n")} as processing,
    (select count(*) > ${MOST_HANDOFFS} from handoffs) as "isPartial",
    (select coalesce(${ms("(carillon.now() - min(since))")}, 0) from oldest) as "oldestAgeMs"`;

type Counted = {
  queued: number[];
  scheduled: number[];
  processing: number[];
  isPartial: boolean;
  oldestAgeMs: number;
};

export async function depthOf(db: Queryable, tenant: number, most: number): Promise<LaneDepths> {
  const { rows } = await db.query<Counted>({ name: "carillon-depth-of", text: DEPTH, values: [tenant, most] });
  const { queued = [], scheduled = [], processing = [], isPartial = false, oldestAgeMs = 0 } = rows[0] ?? {};
  return {
    queued: byLane(queued),
    scheduled: byLane(scheduled),
    processing: byLane(processing),
    isPartial,
    oldestAgeMs: Math.max(0, Math.round(oldestAgeMs)),
  };
}

const byLane = (counts: readonly number[]) =>
  Object.fromEntries(PRIORITIES.map((lane, rank) => [lane, counts[rank] ?? 0])) as { [lane in Priority]: number };
