// What sending cost, by estimate.

import type { Queryable } from "#store/connection/database.ts";

export type Spend = { provider: string; sent: number; cost: number };
export type CostLine = { key: string; sent: number; cost: number };

/** Of one tenant, by provider, since an instant. The partitions before it are not looked at. */
export async function readSpend(db: Queryable, tenant: number, since: Date): Promise<Spend[]> {
  const { rows } = await db.query<Spend>(
    `select provider, count(*)::int as sent, coalesce(sum(cost), 0)::float8 as cost from carillon.events
     where notification_id >= carillon.first_id($2::timestamptz - interval '1 day') and tenant = $1 and at >= $2
       and type = 'attempt' and outcome = 'accepted' and provider is not null
     group by provider order by provider`,
    [tenant, since],
  );
  return rows;
}

/** By channel, by provider, or by a field of the metadata. */
export async function readCosts(
  db: Queryable,
  tenant: number,
  { by, since, until }: { by: string; since: Date; until: Date },
): Promise<CostLine[]> {
  const field = by.startsWith("metadata.") ? by.slice("metadata.".length) : null;
  const grouped = field !== null ? "n.request -> 'metadata' ->> $4" : by === "channel" ? "n.channel" : "e.provider";
  const { rows } = await db.query<CostLine>(
    `select coalesce(${grouped}, '') as key, count(*)::int as sent, coalesce(sum(e.cost), 0)::float8 as cost
     from carillon.events e join carillon.notifications n on n.tenant = e.tenant and n.id = e.notification_id
     where e.notification_id >= carillon.first_id($2::timestamptz - interval '1 day') and e.tenant = $1
       and e.at >= $2 and e.at < $3 and e.type = 'attempt' and e.outcome = 'accepted'
     group by 1 order by 3 desc, 1 limit 1000`,
    [tenant, since, until, ...(field !== null ? [field] : [])],
  );
  return rows;
}

/** What one message of theirs cost on average, by provider: among so many of the tenant's newest notifications. */
export async function readPrices(
  db: Queryable,
  tenant: number,
  newest: number,
): Promise<{ [provider: string]: number }> {
  const { rows } = await db.query<{ provider: string; price: number }>(
    `select e.provider, avg(e.cost)::float8 as price from (
       select id from carillon.notifications where tenant = $1 order by id desc limit $2
     ) n cross join lateral (
       select e.provider, e.cost from carillon.events e where e.notification_id = n.id and e.type = 'attempt'
         and e.outcome = 'accepted' and e.provider is not null and e.cost is not null
     ) e group by e.provider`,
    [tenant, newest],
  );
  return Object.fromEntries(rows.map(({ provider, price }) => [provider, price]));
}
