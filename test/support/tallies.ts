// What the tallies say, and what the record says when everything in it is counted.

import type { Queryable } from "#store/connection/database.ts";

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
    `select ${KEYS}, ${at}::text as at, count(*)::int as count, coalesce(sum(cost::numeric), 0)::float8 as cost, count(latency_ms)::int as timed
     from (${COUNTED}) h group by ${KEYS}, ${at} order by ${KEYS}, 9`,
  );
  return rows;
}

export async function tallied(db: Queryable, grain: "minute" | "hour" | "day" | "ever" = "ever"): Promise<Line[]> {
  const { rows } = await db.query<Line>(
    `select ${KEYS}, at::text as at, sum(count)::int as count, sum(cost)::float8 as cost,
       sum(coalesce((select sum(l) from unnest(latencies) as l), 0))::int as timed
     from carillon.tallies where grain = $1 group by ${KEYS}, at order by ${KEYS}, 9`,
    [grain],
  );
  return rows;
}
