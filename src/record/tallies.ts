// Counts what happened. Each statement here is one of a transaction that holds the tallies alone; the step moves the position in the same one.
//
// From the feed: rows after the position and below the horizon, whole rows. Where a row says what its facts count as, that is added up; elsewhere each is
// looked up in the record. From the record, once, what was there before: all that it says of the next notifications, less what the feed has after the position, which the follower is yet to come to.

import { type Position, startOf } from "#domain/fact.ts";
import { BOUNDS_MS, PLACES } from "#domain/histogram.ts";
import { KEPT_DAYS } from "#domain/statistics.ts";
import type { Queryable } from "#store/connection/database.ts";
import { readEpoch } from "./feed.ts";

export const TALLIES = "tallies";

/** Up to where the record was counted: of what comes after, nothing is yet. */
export type Base = { tenant: number; id: string };

/** `isAtEnd`: there is no more for now. */
export type Folded = { facts: number; next: Position; isAtEnd: boolean };

export const LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const LAST_TENANT = 2_147_483_647;
/** In one statement: a fraction of a second. A row has up to a thousand facts, or lines that count them. */
const MOST_ROWS = 1_000;
const MOST_FACTS = 5_000;
const MOST_COUNTED = 2_000;
/** What is counted late is fresh once more, so this need not be longer than most take to be counted. */
const FRESH_MINUTES = 2;

const KEYS = "tenant, channel, lane, provider, event, was, becomes, outcome";
/** Something for each place of a histogram. */
export const places = (each: (place: number) => string): string =>
  `array[${Array.from({ length: PLACES }, (_, n) => each(n + 1)).join(", ")}]`;

/** Adds to the lines there are. */
const STORE = (lines: string) => `
    insert into carillon.tally_lines as t (${KEYS}, grain, at, count, cost, latencies) ${lines}
    on conflict (tenant, grain, at, channel, lane, provider, event, was, becomes, outcome) do update
    set count = t.count + excluded.count, cost = t.cost + excluded.cost, latencies = case
      when excluded.latencies = '{}' then t.latencies when t.latencies = '{}' then excluded.latencies
      else ${places((place) => `t.latencies[${place}] + excluded.latencies[${place}]`)} end`;

// What is to be looked up and is no more in the record is not counted; nor is what was read, which is no event. Thousands of facts become some lines first, and only those
// are put into words. `more`: lines of what was counted already.
const count = (more = "") => `
  lines as materialized (
    select f.tenant, n.channel, n.priority, e.provider, e.type, e.from_status, e.to_status, e.outcome,
      date_trunc('minute', coalesce(e.at, n.accepted_at)) as minute,
      case when e.type = 'attempt' then width_bucket(e.latency_ms::float8, '{${BOUNDS_MS.join(",")}}'::float8[]) + 1 end as place,
      count(*)::integer as count, coalesce(sum(e.cost::numeric), 0) as cost
    from facts f
    cross join lateral (
      select x.channel, x.priority, x.accepted_at from carillon.notifications x where x.tenant = f.tenant and x.id = f.id offset 0
    ) n
    left join lateral (
      select x.provider, x.type, x.from_status, x.to_status, x.outcome, x.at, x.cost, x.latency_ms from carillon.events x
      where f.number > 0 and x.notification_id = f.id and x.seq = f.number offset 0
    ) e on true
    where f.number = 0 or e.type is not null
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
  ), worded as (
    select l.tenant, l.channel, l.priority as lane, coalesce(l.provider, '') as provider, coalesce(l.type, 'accepted') as event,
      coalesce(l.from_status::text, '') as was, coalesce(l.to_status::text, '') as becomes, coalesce(l.outcome, '') as outcome, l.minute, l.place, l.count,
      l.cost
    from lines l${more}
  ), stored as (${STORE(`
    select ${KEYS}, 'fresh', minute, sum(count), sum(cost),
      case when count(place) > 0 then ${places((place) => `coalesce(sum(count) filter (where place = ${place}), 0)`)} else '{}' end
    from worded group by ${KEYS}, minute`)}
  )`;

/** Of rows that say so, if all is counted that was there before. */
const COUNTED = `
    union all
    select (k ->> 0)::integer, k ->> 1, (k ->> 2)::smallint, k ->> 3, k ->> 4, k ->> 5, k ->> 6, k ->> 7, date_trunc('minute', t.at), (k ->> 8)::integer,
      (c ->> 1)::integer, (c ->> 2)::numeric
    from taken t cross join lateral jsonb_array_elements(t.counts::jsonb) as c cross join lateral (select c -> 0 as k offset 0) kind`;

const FOLD = `
  with here as materialized (
    select epoch, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon from carillon.epochs
    where started_at = pg_postmaster_start_time() order by epoch desc limit 1
  ), read as materialized (
    select e.epoch, e.cluster, e.epoch = here.epoch as is_current, (select min(o.epoch) from carillon.epochs o where o.epoch > e.epoch) as following,
      case when e.epoch = here.epoch then here.horizon else 9223372036854775807 end as horizon
    from here join carillon.epochs e on e.epoch = $1
  ), scanned as materialized (
    select f.*, sum(weight) over (order by key, seq) - weight as before from (
      select key, seq, at, size, tenants, ids, numbers, known.counts, coalesce(json_array_length(known.counts), size) as weight
      from carillon.feed x cross join lateral (select case when $5 = '${LAST_ID}' then x.counts end as counts) known
      where cluster = (select cluster from read) and (key, seq) >= ($2::bigint, $3::bigint) and key < (select horizon from read)
      order by key, seq limit ${MOST_ROWS}
    ) f
  ), taken as materialized (select * from scanned where before < ${MOST_FACTS}),
  facts as materialized (
    select * from (
      select coalesce(x.tenant, t.tenants[1]) as tenant, x.id, coalesce(x.number, 0) as number
      from taken t cross join lateral unnest(t.tenants, t.ids, t.numbers) as x(tenant, id, number)
      where t.counts is null
    ) f where (f.tenant, f.id) <= ($4::integer, $5::uuid)
  ), ${count(COUNTED)}, last as (select key, seq from taken order by key desc, seq desc limit 1)
  select read.is_current as "isCurrent", read.following, last.key::float8 as key, last.seq::float8 as seq,
    (select count(*) from facts)::int + (select coalesce(sum(size), 0) from taken where counts is not null)::int as facts, (select count(*) from taken) = ${MOST_ROWS} or (select count(*) from scanned) > (select count(*) from taken) as "isCut"
  from read left join last on true`;

type FoldRow = {
  isCurrent: boolean;
  following: number | null;
  key: number | null;
  seq: number | null;
  facts: number;
  isCut: boolean;
};

/** Adds what follows this position; the caller moves it to `next`. */
export async function foldFeed(tx: Queryable, after: Position, { tenant, id }: Base): Promise<Folded> {
  const { rows } = await tx.query<FoldRow>({
    name: "carillon-tallies-fold",
    text: FOLD,
    values: [after.epoch, after.key, after.seq, tenant, id],
  });
  const [row] = rows;
  if (!row) {
    // The epoch is new, and nobody has given it its number yet.
    await readEpoch(tx);
    return { facts: 0, next: after, isAtEnd: false };
  }
  const { isCurrent, following, key, seq, facts, isCut } = row;
  if (key !== null && seq !== null)
    return { facts, next: { ...after, key, seq: seq + 1, ordinal: 0 }, isAtEnd: isCurrent && !isCut };
  if (isCurrent || following === null) return { facts, next: after, isAtEnd: true };
  return { facts, next: startOf(following), isAtEnd: false };
}

// A purge is told to nobody, and so it is counted nowhere.
const COUNT_RECORD = `
  with next as materialized (
    select tenant, id from carillon.notifications where (tenant, id) > ($1::integer, $2::uuid) and tenant > 0
    order by tenant, id limit ${MOST_COUNTED}
  ), untold as materialized (
    select x.id, coalesce(x.number, 0) as number from carillon.untallied u cross join lateral unnest(u.ids, u.numbers) as x(id, number)
  ), facts as materialized (
    select * from (
      select tenant, id, 0::bigint as number from next
      union all
      select distinct n.tenant, n.id, e.seq from next n
      cross join lateral (select x.seq from carillon.events x where x.notification_id = n.id and x.type <> 'purged' offset 0) e
    ) f where (f.id, f.number) not in (select u.id, u.number from untold u)
  ), ${count()}, moved as (
    update carillon.tallied t set tenant = l.tenant, id = l.id from (
      (select tenant, id from next where (select count(*) from next) = ${MOST_COUNTED} order by tenant desc, id desc limit 1)
      union all (select ${LAST_TENANT}, '${LAST_ID}'::uuid where (select count(*) from next) < ${MOST_COUNTED})
    ) l returning t.id
  )
  select id = '${LAST_ID}' as "isAll" from moved`;

/** Counts the next of what the record had before, and keeps up to where; answers whether that was all. */
export async function countRecord(tx: Queryable, { tenant, id }: Base): Promise<boolean> {
  const { rows } = await tx.query<{ isAll: boolean }>({
    name: "carillon-tallies-base",
    text: COUNT_RECORD,
    values: [tenant, id],
  });
  return rows[0]?.isAll ?? false;
}

const SPREAD = `
  with over as (
    delete from carillon.tally_lines where ctid = any (array(
      select ctid from carillon.tally_lines where grain = 'fresh' and at < carillon.now() - ${FRESH_MINUTES} * interval '1 minute'
      limit $1 for update skip locked))
    returning *
  ), grains as (
    select ${KEYS}, s.grain, s.at, o.count, o.cost, o.latencies from over o cross join lateral (values
      ('minute', o.at, ${KEPT_DAYS.minute}), ('hour', date_trunc('hour', o.at, 'UTC'), ${KEPT_DAYS.hour}),
      ('day', date_trunc('day', o.at, 'UTC'), ${KEPT_DAYS.day}), ('ever', '-infinity', null)
    ) s(grain, at, days) where s.days is null or s.at >= carillon.now() - s.days * interval '1 day'
  ), stored as (${STORE(`
    select ${KEYS}, grain, at, sum(count), sum(cost), case when bool_or(latencies <> '{}')
      then ${places((place) => `coalesce(sum(latencies[${place}]), 0)`)} else '{}' end
    from grains group by ${KEYS}, grain, at`)}
  )
  select count(*)::int as lines from over`;

/** Puts minutes that are over into all grains, so many lines of them; answers with how many. It waits for nobody who counts. */
export async function spreadFresh(db: Queryable, most: number): Promise<number> {
  const { rows } = await db.query<{ lines: number }>({ name: "carillon-tallies-spread", text: SPREAD, values: [most] });
  return rows[0]?.lines ?? 0;
}

export async function readBase(db: Queryable): Promise<Base> {
  const { rows } = await db.query<Base>({ name: "carillon-tallied", text: "select tenant, id from carillon.tallied" });
  return rows[0] ?? { tenant: 0, id: LAST_ID };
}

/** Forgets up to so many of those that are finer than their age deserves; answers with how many. */
export async function coarsen(db: Queryable, most: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.tally_lines where ctid = any (array(
       select t.ctid from (values ('minute', ${KEPT_DAYS.minute}), ('hour', ${KEPT_DAYS.hour}), ('day', ${KEPT_DAYS.day})) as s(grain, days)
       cross join lateral (
         select x.ctid from carillon.tally_lines x where x.grain = s.grain and x.at < carillon.now() - s.days * interval '1 day' limit $1
       ) t limit $1))`,
    [most],
  );
  return rowCount ?? 0;
}
