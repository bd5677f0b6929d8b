// Reads the feed: what happened to all notifications, in an order in which nothing is missed.
//
// A page ends after so many facts, or so many rows: whoever asks for few of many is answered soon, perhaps with nothing, and goes on from
// `next`. A position never runs ahead of a row that was read: that row's commit is on the disk, and with it every id up to its key, so
// that a crash gives none of them out again.
//
// An epoch that is over has no horizon: nobody writes into it any more. Who follows from inside reads it to its end and goes on with the next.

import { FACT_TYPES, type Fact, type FactType, type Position, startOf } from "#domain/fact.ts";
import type { Queryable } from "#store/connection/database.ts";
import { wholeMs } from "./whole-ms.ts";

export type FeedAsked = {
  after: Position;
  limit: number;
  /** One, or any of several. */
  tenant?: number | readonly number[];
  types?: readonly FactType[];
};

/** `isAtEnd`: there is no more for now. `epoch` is the one that is written now. */
export type FeedPage = { kind: "page"; facts: Fact[]; next: Position; isAtEnd: boolean; epoch: number };

/**
 * What follows this position cannot be told without a gap: retention has taken some of it (`forgotten`), or it lies ahead of everything or in an
 * epoch that nobody knows, so that it is of another past (`unknown`). `next` is the oldest that is kept.
 */
export type FeedReset = { kind: "reset"; reason: "forgotten" | "unknown"; next: Position; epoch: number };

/** Looked at for one page. */
const MOST_ROWS = 2_000;
/** Taken apart for one page of which something is left out, besides those of the last row. */
const MOST_FACTS = 10_000;

const READ = `
  with here as materialized (
    select epoch, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon from carillon.epochs
    where started_at = pg_postmaster_start_time() order by epoch desc limit 1
  ), read as materialized (
    select e.*, here.epoch as current, case when e.epoch = here.epoch then here.horizon else 9223372036854775807 end as horizon,
      case when $2::bigint = 0 then e.forgotten_key else $2 end as from_key,
      case when $2 = 0 then e.forgotten_seq + 1 else $3::bigint end as from_seq,
      (select min(o.epoch) from carillon.epochs o where o.epoch > e.epoch) as following
    from here left join carillon.epochs e on e.epoch = $1
  ), scanned as materialized (
    select f.*, row_number() over (order by f.key, f.seq) as nth,
      sum(case when $5::integer[] is null or $5 && f.tenants then f.size else 0 end)
        over (order by f.key, f.seq rows between unbounded preceding and 1 preceding) as before
    from (
      select key, seq, at, size, tenants, types, ids, numbers from carillon.feed
      where cluster = (select cluster from read) and (key, seq) >= ((select from_key from read), (select from_seq from read))
        and key < (select horizon from read)
      order by key, seq limit $7::integer + 1
    ) f
  ), taken as materialized (
    select * from scanned where nth <= $7 and coalesce(before, 0) < $8::integer + $4::integer
  ), facts as materialized (
    select t.key, t.seq, t.at, t.size, x.ordinal, coalesce(x.tenant, t.tenants[1]) as tenant, coalesce(x.type, t.types[1]) as type, x.id,
      coalesce(x.number, 0) as number
    from taken t cross join lateral unnest(t.tenants, t.types, t.ids, t.numbers) with ordinality as x(tenant, type, id, number, ordinal)
    where ($5 is null or $5 && t.tenants) and (t.key, t.seq, x.ordinal) > ($2, $3, $4)
      and ($5 is null or coalesce(x.tenant, t.tenants[1]) = any ($5))
      and ($6::smallint[] is null or coalesce(x.type, t.types[1]) = any ($6))
    order by t.key, t.seq, x.ordinal limit $9
  ), last as (select key, seq from taken order by key desc, seq desc limit 1)
  select read.epoch, read.current, read.following, read.horizon::float8 as horizon, read.forgotten_key::float8 as "forgottenKey",
    read.forgotten_seq::float8 as "forgottenSeq", last.key::float8 as "lastKey", last.seq::float8 as "lastSeq",
    (select count(*) from scanned) > (select count(*) from taken) as "isCut", f.*
  from read left join last on true cross join (
    select json_agg(key) as keys, json_agg(seq) as seqs, json_agg(${wholeMs("at")}) as ats, json_agg(size) as sizes, json_agg(ordinal) as ordinals,
      json_agg(tenant) as tenants, json_agg(type) as types, json_agg(id) as ids, json_agg(number) as numbers
    from (select * from facts order by key, seq, ordinal) f
  ) f`;

type Standing = {
  /** Null if there never was such an epoch. */
  epoch: number | null;
  current: number;
  following: number | null;
  horizon: number;
  forgottenKey: number;
  forgottenSeq: number;
  lastKey: number | null;
  lastSeq: number | null;
  isCut: boolean;
};
/** A fact as the feed has it. */
export type Told = {
  key: number;
  seq: number;
  at: Date;
  size: number;
  ordinal: number;
  tenant: number;
  type: number;
  id: string;
  number: number;
};
/** A column an array: that costs the driver much less than rows do. Null where there are none. */
type Columns = {
  keys: number[];
  seqs: number[];
  ats: number[];
  sizes: number[];
  ordinals: number[];
  tenants: number[];
  types: number[];
  ids: string[] | null;
  numbers: number[];
};

export async function readFeed(db: Queryable, asked: FeedAsked): Promise<FeedPage | FeedReset> {
  const { after, limit, tenant, types } = asked;
  const isWhole = tenant === undefined && types === undefined;
  const { rows } = await db.query<Standing & Columns>({
    name: "carillon-feed",
    text: READ,
    values: [
      after.epoch,
      after.key,
      after.seq,
      after.ordinal,
      tenant === undefined ? null : [tenant].flat(),
      types ? numbersOf(types) : null,
      isWhole ? Math.min(limit, MOST_ROWS) : MOST_ROWS,
      isWhole ? limit : MOST_FACTS,
      limit,
    ],
  });
  const [standing] = rows;
  if (!standing) {
    await readEpoch(db);
    return readFeed(db, asked);
  }
  const reason = lostAt(after, standing);
  if (reason) return { kind: "reset", reason, next: startOf(standing.current), epoch: standing.current };
  const facts = factsIn(after.epoch, standing);
  return { kind: "page", facts, ...nextOf(asked, standing, facts), epoch: standing.current };
}

function factsIn(epoch: number, columns: Columns): Fact[] {
  const { keys, seqs, ats, sizes, ordinals, tenants, types, ids, numbers } = columns;
  return (ids ?? []).map((id, n) => {
    const at = new Date(ats[n] as number);
    const [key, seq, size, ordinal] = [keys[n], seqs[n], sizes[n], ordinals[n]] as [number, number, number, number];
    const [tenant, type, number] = [tenants[n], types[n], numbers[n]] as [number, number, number];
    return factOf(epoch, { key, seq, at, size, ordinal, tenant, type, id, number });
  });
}

export const numbersOf = (types: readonly FactType[]): number[] => types.map((type) => FACT_TYPES.indexOf(type) + 1);

/** The epoch that is written now; the first who asks after it began gives it its number. */
export async function readEpoch(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ epoch: number }>(
    `select coalesce((select epoch from carillon.epochs where started_at = pg_postmaster_start_time() order by epoch desc limit 1),
      carillon.this_epoch()) as epoch`,
  );
  return rows[0]?.epoch ?? 0;
}

function lostAt({ key, seq }: Position, standing: Standing): FeedReset["reason"] | undefined {
  const { epoch, horizon, forgottenKey, forgottenSeq } = standing;
  if (epoch === null || key >= horizon) return "unknown";
  if (key === 0) return undefined;
  return key < forgottenKey || (key === forgottenKey && seq <= forgottenSeq) ? "forgotten" : undefined;
}

/** A row that was read to its end is behind us. */
export const factOf = (epoch: number, { key, seq, at, size, ordinal, tenant, type, id, number }: Told): Fact => ({
  position: ordinal === size ? { epoch, key, seq: seq + 1, ordinal: 0 } : { epoch, key, seq, ordinal },
  type: FACT_TYPES[type - 1] as FactType,
  at,
  tenant,
  notificationId: id,
  number,
});

function nextOf(
  { after, limit }: FeedAsked,
  standing: Standing,
  facts: readonly Fact[],
): Pick<FeedPage, "next" | "isAtEnd"> {
  const { epoch, current, following, lastKey, lastSeq, isCut } = standing;
  const last = facts.at(-1);
  if (last && facts.length === limit) return { next: last.position, isAtEnd: false };
  const isOver = epoch !== current;
  if (isOver && !isCut) return { next: startOf(following ?? current), isAtEnd: false };
  const next = lastKey === null || lastSeq === null ? after : { ...after, key: lastKey, seq: lastSeq + 1, ordinal: 0 };
  return { next, isAtEnd: !isCut };
}
