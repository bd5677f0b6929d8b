// What sending cost, by estimate: from the tallies, and from the record where those do not know.

import type { Spans } from "#domain/spans.ts";
import type { Queryable } from "#store/connection/database.ts";
import { readEpoch } from "./feed.ts";
import { IS_COUNTED, LATELY } from "./lately.ts";

export type CostLine = { key: string; sent: number; cost: number };
/** What tallies know of a message. Who sent it has no name in rows of long ago: ''. */
export type CostKey = "provider" | "channel";

const MOST_LINES = 1_000;
const KEYS: { [by in CostKey]: string } = { provider: "coalesce(e.provider, '')", channel: "n.channel" };
const WAS_TAKEN = (e: string) => `${e}.type = 'attempt' and ${e}.outcome = 'accepted'`;
const SUMS = "sum(sent)::float8 as sent, sum(cost)::float8 as cost";

const TALLIED = (by: CostKey) => `
  with ${LATELY}, sent as (
    select t.${by} as key, t.count as sent, t.cost from unnest($4::text[], $5::timestamptz[], $6::timestamptz[]) as s(grain, since, until)
    cross join lateral (
      select x.* from carillon.tallies x where x.tenant = $1 and x.grain = s.grain and x.at >= s.since and x.at < s.until
        and x.event = 'attempt' and x.outcome = 'accepted' offset 0) t
    union all
    select ${KEYS[by]}, 1, coalesce(e.cost::numeric, 0) from lately l cross join lateral (
      select x.* from carillon.events x where l.number > 0 and x.notification_id = l.id and x.seq = l.number and ${WAS_TAKEN("x")}
        and x.at >= $2 and x.at < $3 offset 0) e
    join carillon.notifications n on n.tenant = $1 and n.id = l.id
  ), lines as (select key, ${SUMS} from sent group by key)
  select ${IS_COUNTED} as "isCounted", lines.* from bounds left join lines on true order by cost desc, key limit ${MOST_LINES}`;

// As long as what was there before is not counted, or where nobody counts. The partitions before it are not looked at.
const WHOLE = (by: CostKey) => `
  select key, ${SUMS} from (
    select ${KEYS[by]} as key, 1 as sent, coalesce(e.cost::numeric, 0) as cost
    from carillon.events e join carillon.notifications n on n.tenant = e.tenant and n.id = e.notification_id
    where e.notification_id >= carillon.first_id($2::timestamptz - interval '1 day') and e.tenant = $1
      and e.at >= $2 and e.at < $3 and ${WAS_TAKEN("e")}
  ) sent group by key order by cost desc, key limit ${MOST_LINES}`;

/** The dearest first. */
export async function readCosts(
  db: Queryable,
  tenant: number,
  by: CostKey,
  { since, until, spans }: Spans,
): Promise<CostLine[]> {
  // What is told in an epoch that has no number yet would be left out.
  await readEpoch(db);
  const { rows } = await db.query<CostLine & { isCounted: boolean }>(TALLIED(by), [
    ...[tenant, since, until, spans.map(({ grain }) => grain)],
    ...[spans.map((span) => span.since), spans.map((span) => span.until)],
  ]);
  if (!rows[0]?.isCounted) return (await db.query<CostLine>(WHOLE(by), [tenant, since, until])).rows;
  return rows.filter(({ key }) => key !== null).map(({ key, sent, cost }) => ({ key, sent, cost }));
}

/** `looked`: how many notifications were looked at; where there are more, `nextId` is where to go on, below it. */
export type CostPage = { lines: CostLine[]; looked: number; nextId: string | undefined; until: Date | undefined };
export type CostStretch = { since: Date; until: Date; beforeId: string | undefined; maxScanned: number };

/** By a field of the metadata, which tallies do not know: of the next `maxScanned` that were accepted since a day before, the newest first. */
export async function readCostsOfField(
  db: Queryable,
  tenant: number,
  field: string,
  { since, until, beforeId, maxScanned }: CostStretch,
): Promise<CostPage> {
  const { rows } = await db.query<CostLine & { looked: number; lastId: string | null; lastAt: Date | null }>(
    `with looked as materialized (
       select n.id, n.request -> 'metadata' ->> $4 as key from carillon.notifications n
       where n.tenant = $1 and n.id >= carillon.first_id($2::timestamptz - interval '1 day')
         and n.id < carillon.first_id($3::timestamptz + interval '1 day') and ($5::uuid is null or n.id < $5)
       order by n.id desc limit $6
     ), extent as (
       select count(*)::int as looked, (select id from looked order by id limit 1) as last_id from looked
     ), lines as (
       select coalesce(l.key, '') as key, count(*)::float8 as sent, coalesce(sum(e.cost::numeric), 0)::float8 as cost
       from looked l cross join lateral (
         select x.cost from carillon.events x where x.notification_id = l.id and x.at >= $2 and x.at < $3 and ${WAS_TAKEN("x")} offset 0
       ) e group by 1
     )
     select lines.*, extent.looked, extent.last_id as "lastId", carillon.time_of(extent.last_id) as "lastAt"
     from extent left join lines on true order by cost desc, key limit ${MOST_LINES}`,
    [tenant, since, until, field, beforeId ?? null, maxScanned],
  );
  const { looked = 0, lastId = null, lastAt = null } = rows[0] ?? {};
  const isCut = looked === maxScanned;
  return {
    lines: rows.filter(({ key }) => key !== null).map(({ key, sent, cost }) => ({ key, sent, cost })),
    looked,
    nextId: isCut ? (lastId ?? undefined) : undefined,
    until: isCut ? (lastAt ?? undefined) : undefined,
  };
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
