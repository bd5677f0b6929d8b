// How much waits in the queue.

import { PRIORITIES, type Priority } from "#domain/priority.ts";
import type { Queryable } from "#store/connection/database.ts";

export type Depth = {
  depth: { [lane in Priority]: number };
  processing: number;
  scheduled: number;
  oldestAgeMs: number;
};

export async function readDepth(db: Queryable, tenant: number): Promise<Depth> {
  const { rows } = await db.query<{ depth: number[]; processing: number; scheduled: number; oldest_age_ms: number }>({
    name: "carillon-depth",
    text: `select
        array(select (select count(*)::int from carillon.ready where priority = lane and tenant = $1)
                + (select count(*)::int from carillon.later
                   where priority = lane and due_at <= statement_timestamp() and tenant = $1)
              from generate_series(0, 3) as lane) as depth,
        (select count(*)::int from carillon.leased where tenant = $1) as processing,
        (select count(*)::int from carillon.later where due_at > statement_timestamp() and tenant = $1) as scheduled,
        (select coalesce(extract(epoch from statement_timestamp() - min(since)) * 1000, 0)::float8
         from generate_series(0, 3) as lane, lateral (
           select (select accepted_at from carillon.notifications n where n.tenant = $1 and n.id = r.id) as since
           from (select id from carillon.ready where priority = lane and tenant = $1 order by seq limit 1) r
           union all
           (select due_at from carillon.later
            where priority = lane and due_at <= statement_timestamp() and tenant = $1 order by due_at limit 1)
         ) first) as oldest_age_ms`,
    values: [tenant],
  });
  const row = rows[0] ?? { depth: [], processing: 0, scheduled: 0, oldest_age_ms: 0 };
  const depth = Object.fromEntries(PRIORITIES.map((lane, rank) => [lane, row.depth[rank] ?? 0])) as Depth["depth"];
  return {
    depth,
    processing: row.processing,
    scheduled: row.scheduled,
    oldestAgeMs: Math.max(0, Math.round(row.oldest_age_ms)),
  };
}

/** For metrics: the cost is bounded however much waits. */
export async function readFigures(
  db: Queryable,
  silentMs: number,
): Promise<{ depth: { [lane: string]: number }; oldestSeconds: number; workers: number }> {
  const { rows } = await db.query<{ depth: number[]; oldest: number; workers: number }>({
    name: "carillon-figures",
    text: `select
        array(select (select count(*)::int from (
                  select from carillon.ready where priority = lane
                  union all
                  select from carillon.later where priority = lane and due_at <= statement_timestamp()
                  limit 10000
                ) counted)
              from generate_series(0, 3) as lane) as depth,
        (select coalesce(extract(epoch from statement_timestamp() - min(since)), 0)::float8
         from generate_series(0, 3) as lane, lateral (
           select (select accepted_at from carillon.notifications n where n.tenant = r.tenant and n.id = r.id) as since
           from (select tenant, id from carillon.ready where priority = lane order by seq limit 1) r
           union all
           (select due_at from carillon.later where priority = lane and due_at <= statement_timestamp() order by due_at limit 1)
         ) first) as oldest,
        (select count(*)::int from carillon.workers where stopped_at is null
           and seen_at > now() - $1 * interval '1 ms') as workers`,
    values: [silentMs],
  });
  const { depth = [], oldest = 0, workers = 0 } = rows[0] ?? {};
  const lanes = PRIORITIES.map((lane, rank) => [lane, depth[rank] ?? 0]);
  return { depth: Object.fromEntries(lanes), oldestSeconds: Math.max(0, oldest), workers };
}
