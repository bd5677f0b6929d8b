// What the tallies say, and what the record says when everything in it is counted.

import type pg from "pg";
import { BOUNDS_MS } from "#domain/histogram.ts";
import { foldTallies } from "#steps/planned/fold-tallies.ts";
import type { Queryable } from "#store/connection/database.ts";
import { until } from "./until.ts";

/** Until nothing is left that the feed has and the tallies have not: others on the server may hold it up. */
export const fold = (db: pg.Pool) =>
  until(async () => {
    const round = await foldTallies(db);
    const { rows } = await db.query("select from carillon.untallied limit 1");
    return round?.isAtEnd && rows.length === 0 ? true : undefined;
  });

const KEYS = "tenant, channel, lane, provider, event, was, becomes, outcome";

/** One by one, as the tallies would have it. */
const COUNTED = `
  select n.tenant, n.channel, n.priority as lane, coalesce(h.provider, '') as provider, h.type as event, coalesce(h.from_status::text, '') as was,
    case when h.type = 'accepted' then '' else h.to_status::text end as becomes, coalesce(h.outcome, '') as outcome, h.at, h.cost,
    case when h.type = 'attempt' then h.latency_ms end as latency_ms
  from carillon.history h join carillon.notifications n on n.tenant = h.tenant and n.id = h.notification_id where h.tenant > 0 and h.type <> 'purged'`;

type Line = { [column: string]: unknown };

export async function fullCount(db: Queryable, grain: "minute" | "hour" | "day" | "ever" = "ever"): Promise<Line[]> {
  const at = grain === "ever" ? "'-infinity'::timestamptz" : `date_trunc('${grain}', at, 'UTC')`;
  const { rows } = await db.query<Line>(
    `select ${KEYS}, at, sum(count)::int as count, sum(cost)::float8 as cost,
       coalesce(sum(count) filter (where place is not null), 0)::int as timed,
       json_object_agg(place, count order by place) filter (where place is not null) as places
     from (
       select ${KEYS}, ${at}::text as at, width_bucket(latency_ms::float8, '{${BOUNDS_MS}}'::float8[]) + 1 as place,
         count(*)::int as count, coalesce(sum(cost::numeric), 0) as cost
       from (${COUNTED}) h group by ${KEYS}, 9, place
     ) counted group by ${KEYS}, at order by ${KEYS}, at`,
  );
  return rows;
}

export async function tallied(db: Queryable, grain: "minute" | "hour" | "day" | "ever" = "ever"): Promise<Line[]> {
  const { rows } = await db.query<Line>(
    `select ${KEYS}, at, sum(count) filter (where place is null)::int as count, sum(cost)::float8 as cost,
       coalesce(sum(count) filter (where place is not null), 0)::int as timed,
       json_object_agg(place, count order by place) filter (where place is not null) as places
     from (
       select ${KEYS}, at::text as at, x.place, sum(x.count) as count, sum(x.cost) as cost
       from carillon.tallies t cross join lateral (
         select null::bigint as place, t.count, t.cost
         union all
         select l.place, l.count, 0 from unnest(t.latencies) with ordinality as l(count, place) where l.count > 0
       ) x where grain = $1 group by ${KEYS}, at, x.place
     ) counted group by ${KEYS}, at order by ${KEYS}, at`,
    [grain],
  );
  return rows;
}
