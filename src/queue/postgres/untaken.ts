// What waits and nobody takes: found flow by flow, a probe each, however much waits in them.

import { CHANNELS, type Channel } from "#domain/notification.ts";
import { priorityOf } from "#domain/priority.ts";
import { type Flow, takes, takesAll, type WorkerTakes } from "#domain/worker-takes.ts";
import type { Untaken } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";

/** A look costs no more, however many tenants wait: some 10 µs each. */
const MOST_FLOWS = 20_000;
const MOST_NAMED = 100;
/** A tenant that waits for a hundred regions which do not exist must not hide the others. */
const MOST_OF_ONE = 10;
const MOST_COUNTED = 1_000;
/** What was handed to an engine is not in the order of its flows: the first of it are looked at. */
const MOST_HANDED = 10_000;

// The next flow after one, in the order of the index that begins with it.
const nextIn = (table: string, first: string) => `
  select priority, tenant, pool, ${first} as due_at from carillon.${table}
  where priority = lane and tenant between $1 and $2`;
const flowsOf = (table: string, due: string, order: string) => `
  with recursive f as (
    (${nextIn(table, due)} order by ${order} limit 1)
    union all
    select n.* from f cross join lateral (
      ${nextIn(table, due)} and (tenant, pool) > (f.tenant, f.pool) order by ${order} limit 1
    ) n
  )
  select priority, tenant, pool from f where due_at is null or due_at <= carillon.now()`;
const FLOWS = `
  select w.priority, w.tenant as owner, t.name as tenant, w.pool, r.name as region
  from (
    select distinct f.* from unnest('{0,1,2,3}'::smallint[]) as lane cross join lateral (
      select * from (${flowsOf("ready", "null::timestamptz", "tenant, pool")}) ready
      union all
      select * from (${flowsOf("later", "due_at", "tenant, pool, due_at")}) due
      union all
      select priority, tenant, pool from (
        select priority, tenant, pool from carillon.queue_handed_flows where priority = lane and tenant between $1 and $2 limit ${MOST_HANDED}
      ) handed
    ) f limit ${MOST_FLOWS}
  ) w
  join carillon.tenants t on t.id = w.tenant left join carillon.regions r on r.id = w.pool / 16
  order by w.priority, w.tenant, w.pool`;

const COUNTS = `
  select f.n::integer - 1 as n, count.count::integer, ${ms("(carillon.now() - oldest.since)")} as "ageMs"
  from unnest($1::smallint[], $2::integer[], $3::smallint[]) with ordinality as f(lane, owner, of_pool, n)
  cross join lateral (
    select count(*) from (
      select from carillon.ready where priority = lane and tenant = owner and pool = of_pool
      union all
      select from carillon.later where priority = lane and tenant = owner and pool = of_pool and due_at <= carillon.now()
      union all
      select from (select tenant, pool from carillon.queue_handed_flows where priority = lane limit ${MOST_HANDED}) h where h.tenant = owner and h.pool = of_pool
      limit ${MOST_COUNTED}
    ) counted
  ) count
  cross join lateral (
    select min(since) as since from (
      select (select accepted_at from carillon.notifications n where n.tenant = r.tenant and n.id = r.id) as since from (
        select tenant, id from carillon.ready where priority = lane and tenant = owner and pool = of_pool order by seq limit 1
      ) r
      union all
      (select due_at from carillon.later where priority = lane and tenant = owner and pool = of_pool and due_at <= carillon.now()
        order by due_at limit 1)
      union all
      (select handed_at from (select tenant, pool, handed_at from carillon.queue_handed_flows where priority = lane limit ${MOST_HANDED}) h
        where h.tenant = owner and h.pool = of_pool limit 1)
    ) first
  ) oldest
  where count.count > 0`;

type Row = { priority: number; owner: number; tenant: string; pool: number; region: string | null };

const MOST_TENANT = 2_147_483_647;

export async function untaken(db: Queryable, workers: readonly WorkerTakes[], tenant?: number): Promise<Untaken[]> {
  // As a rule somebody takes everything.
  if (workers.some(takesAll)) return [];
  const { rows } = await db.query<Row>({
    name: "carillon-flows",
    text: FLOWS,
    values: [tenant ?? 0, tenant ?? MOST_TENANT],
  });
  const named = new Map<number, number>();
  const left = rows.filter((row) => {
    const ofOwner = named.get(row.owner) ?? 0;
    if (ofOwner >= MOST_OF_ONE || workers.some((one) => takes(one, flowOf(row)))) return false;
    named.set(row.owner, ofOwner + 1);
    return true;
  });
  return counted(db, left.slice(0, MOST_NAMED));
}

async function counted(db: Queryable, flows: readonly Row[]): Promise<Untaken[]> {
  if (flows.length === 0) return [];
  const { rows } = await db.query<{ n: number; count: number; ageMs: number | null }>({
    name: "carillon-untaken",
    text: COUNTS,
    values: [flows.map(({ priority }) => priority), flows.map(({ owner }) => owner), flows.map(({ pool }) => pool)],
  });
  return rows.map(({ n, count, ageMs }) => ({
    ...flowOf(flows[n] as Row),
    count,
    oldestAgeMs: Math.max(0, Math.round(ageMs ?? 0)),
  }));
}

function flowOf({ priority, tenant, pool, region }: Row): Flow {
  const channel: Channel | undefined = CHANNELS[(pool % 16) - 1];
  return { lane: priorityOf(priority), tenant, ...(channel && { channel }), ...(region !== null && { region }) };
}
