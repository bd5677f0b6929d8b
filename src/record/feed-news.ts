// Of whom something is new in the feed, and no more than that: it is looked at again and again, for everybody who waits.

import type { Position } from "#domain/fact.ts";
import type { Queryable } from "#store/connection/database.ts";

/** `isCut`: there is more. */
export type FeedNews = { tenants: ReadonlySet<number>; next: Position; isCut: boolean };

/** Rows of one look: a row has up to a thousand facts. */
const MOST_ROWS = 2_000;

const NEWS = `
  with here as materialized (
    select epoch, cluster, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon from carillon.epochs
    where started_at = pg_postmaster_start_time() order by epoch desc limit 1
  ), fresh as materialized (
    select key, seq, tenants from carillon.feed
    where cluster = (select cluster from here) and (key, seq) >= ($1::bigint, $2::bigint) and key < (select horizon from here)
    order by key, seq limit ${MOST_ROWS}
  ), last as (select key, seq from fresh order by key desc, seq desc limit 1)
  select here.epoch, array(select distinct t from fresh, unnest(fresh.tenants) as t) as tenants,
    last.key::float8 as key, last.seq::float8 as seq, (select count(*) from fresh) = ${MOST_ROWS} as "isCut"
  from here left join last on true`;

type Row = { epoch: number; tenants: number[]; key: number | null; seq: number | null; isCut: boolean };

/** Undefined where the epoch is another: positions of this one mean nothing any more. */
export async function readFeedNews(db: Queryable, after: Position): Promise<FeedNews | undefined> {
  const { rows } = await db.query<Row>({ name: "carillon-feed-news", text: NEWS, values: [after.key, after.seq] });
  const [row] = rows;
  if (!row || row.epoch !== after.epoch) return undefined;
  const { tenants, key, seq, isCut } = row;
  const next = key === null || seq === null ? after : { ...after, key, seq: seq + 1, ordinal: 0 };
  return { tenants: new Set(tenants), next, isCut };
}
