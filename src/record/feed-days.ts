// The days of the feed: made ahead, and dropped when nobody needs to read them any more. A follower that is further behind is not waited for.

import type { Queryable } from "#store/connection/database.ts";
import { eachAlone, inBatches, type Steps } from "#store/housekeeping.ts";
import { readEpoch } from "./feed.ts";

const DAYS_BEHIND = 1;
const DAYS_AHEAD = 8;

export function keepFeed(db: Queryable, days: number, batch: number): Steps {
  const near = Array.from({ length: DAYS_BEHIND + 1 + DAYS_AHEAD }, (_, n) => n - DAYS_BEHIND);
  const past = [dropDays(db, days), thinOut(db, days, batch)];
  return eachAlone([numberEpoch(db), ...near.map((day) => makeDay(db, day)), ...past]);
}

/** Until somebody has, every writer reads the server's control file. */
async function* numberEpoch(db: Queryable): Steps {
  await readEpoch(db);
  yield 0;
}

async function* makeDay(db: Queryable, day: number): Steps {
  const { rows } = await db.query<{ made: number }>(
    "select carillon.make_feed_day(carillon.now() + $1 * interval '1 day')::int as made",
    [day],
  );
  yield rows[0]?.made ?? 0;
}

async function* dropDays(db: Queryable, days: number): Steps {
  const { rows } = await db.query<{ day: string }>(
    `select right(c.relname, 8) as day from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'carillon.feed'::regclass and c.relname ~ '^feed_[0-9]{8}$'
       and (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC' <= carillon.now() - $1 * interval '1 day'
     order by 1`,
    [days],
  );
  for (const { day } of rows) {
    await db.query("select carillon.drop_feed_day($1)", [day]);
    yield 1;
  }
}

const thinOut = (db: Queryable, days: number, batch: number): Steps =>
  inBatches(batch, async (most) => {
    const { rows } = await db.query<{ gone: number }>(
      "select carillon.thin_feed(carillon.now() - $1 * interval '1 day', $2) as gone",
      [days, most],
    );
    return rows[0]?.gone ?? 0;
  });
