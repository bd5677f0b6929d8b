// Where to begin in the feed: with the oldest, now, or at an instant.

import { type Position, startOf } from "#domain/fact.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type FeedReset, readEpoch } from "./feed.ts";

const HERE = `
  here as materialized (
    select *, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon from carillon.epochs where epoch = $1
  )`;

/** Before all that is kept. */
export async function findFeedStart(db: Queryable): Promise<Position> {
  const epoch = await readEpoch(db);
  const { rows } = await db.query<{ epoch: number }>("select min(epoch) as epoch from carillon.epochs");
  return startOf(rows[0]?.epoch ?? epoch);
}

const END = `
  with ${HERE}
  select key::float8 as key, seq::float8 as seq from carillon.feed
  where cluster = (select cluster from here) and key < (select horizon from here) order by key desc, seq desc limit 1`;

/** After all that can be told now. */
export async function findFeedEnd(db: Queryable): Promise<Position> {
  const epoch = await readEpoch(db);
  const { rows } = await db.query<{ key: number; seq: number }>({
    name: "carillon-feed-end",
    text: END,
    values: [epoch],
  });
  return rows[0] ? { epoch, key: rows[0].key, seq: rows[0].seq + 1, ordinal: 0 } : startOf(epoch);
}

/** Between the beginning of a statement and what it tells. */
const LONGEST_STATEMENT = "1 minute";
/** Where so many rows were written by statements that began before, it begins before all of them. */
const MOST_ROWS = 20_000;

// What is told by a statement that began after a row was written has no smaller key than that row's floor. From there on, the first
// that happened late enough.
const SINCE = `
  with ${HERE}, floor as materialized (
    select coalesce((select floor from carillon.feed where cluster = (select cluster from here)
      and at <= $2::timestamptz - interval '${LONGEST_STATEMENT}' order by at desc limit 1), 0) as key
  ), near as materialized (
    select key, seq, at from carillon.feed
    where cluster = (select cluster from here) and key >= (select key from floor) and key < (select horizon from here)
    order by key, seq limit ${MOST_ROWS}
  ), first as (select key, seq from near where at >= $2 order by key, seq limit 1),
  last as (select key, seq from near order by key desc, seq desc limit 1)
  select here.epoch = (select min(epoch) from carillon.epochs) or here.began_at <= $2 as "isOfEpoch",
    coalesce(here.forgotten_at > $2, false) as "isForgotten", (select count(*) from near) = ${MOST_ROWS} as "isCut",
    floor.key::float8 as floor, first.key::float8 as key, first.seq::float8 as seq, last.key::float8 as "lastKey", last.seq::float8 as "lastSeq"
  from here cross join floor left join first on true left join last on true`;

type Found = {
  isOfEpoch: boolean;
  isForgotten: boolean;
  isCut: boolean;
  floor: number;
  key: number | null;
  seq: number | null;
  lastKey: number | null;
  lastSeq: number | null;
};

/** From where on everything is told that happened at this instant or later, by the record's clock. */
export async function findFeedSince(db: Queryable, since: Date): Promise<Position | FeedReset> {
  const epoch = await readEpoch(db);
  const { rows } = await db.query<Found>({ name: "carillon-feed-since", text: SINCE, values: [epoch, since] });
  const found = rows[0];
  if (!found) return startOf(epoch);
  if (found.isForgotten) return { kind: "reset", reason: "forgotten", next: startOf(epoch), epoch };
  if (!found.isOfEpoch) return { kind: "reset", reason: "unknown", next: startOf(epoch), epoch };
  if (found.key !== null && found.seq !== null) return { epoch, key: found.key, seq: found.seq, ordinal: 0 };
  const { floor, isCut, lastKey, lastSeq } = found;
  // After what was seen, and not after what another look would see: what comes in between happened since then.
  if (!isCut && lastKey !== null && lastSeq !== null) return { epoch, key: lastKey, seq: lastSeq + 1, ordinal: 0 };
  return { epoch, key: isCut ? floor : Math.max(0, floor - 1), seq: 0, ordinal: 0 };
}
