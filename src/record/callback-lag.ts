// How far one that follows the feed is behind, with those who follow apart from it: how long ago that happened which is read next.

import type { Queryable } from "#store/connection/database.ts";

const LAG = `
  select coalesce(max(date_part('epoch', carillon.now() - f.at) * 1000), 0) as "lagMs"
  from carillon.followers w join carillon.epochs e on e.epoch = w.epoch
  cross join lateral (
    select at from carillon.feed where cluster = e.cluster and (key, seq) >= (w.key, w.seq) order by key, seq limit 1
  ) f where w.name = $1 or starts_with(w.name, $1 || ' ')`;

/** 0 where it has told everything. */
export async function readLag(db: Queryable, follower: string): Promise<number> {
  const { rows } = await db.query<{ lagMs: number }>({ name: "carillon-callback-lag", text: LAG, values: [follower] });
  return Math.max(0, rows[0]?.lagMs ?? 0);
}
