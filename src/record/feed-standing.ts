// How the feed stands: since when it is held up and by whom, and how far those are behind that follow from inside.
//
// Nothing can be told from the oldest transaction on that is still open and has written something, in any database of the server: its id is the
// horizon. Looking costs one row of the feed and a walk over the server's connections, whatever is written meanwhile.

import type { Queryable } from "#store/connection/database.ts";

/** A connection's process, or the name of a prepared one. `ageMs` is null where our user may not see it. */
export type Holder = { pid: number | null; gid: string | null; ageMs: number | null };
/** `missedMs`: how long ago it was so far behind that something was taken which it had not read. */
export type FollowerStanding = { name: string; lagMs: number; missedMs: number | null };
/** `heldMs`: how long ago the first was written that cannot be told yet; 0 where nothing waits. */
export type FeedStanding = { heldMs: number; holder: Holder | undefined; followers: FollowerStanding[] };

const HELD = `
  with edge as materialized (select pg_snapshot_xmin(pg_current_snapshot()) as horizon)
  select coalesce((
      select date_part('epoch', carillon.now() - f.at) * 1000 from carillon.feed f
      where f.cluster = (select cluster from carillon.epochs where started_at = pg_postmaster_start_time() order by epoch desc limit 1)
        and f.key >= edge.horizon::text::bigint
      order by f.key, f.seq limit 1), 0) as "heldMs",
    a.pid, p.gid, date_part('epoch', clock_timestamp() - coalesce(a.xact_start, p.prepared)) * 1000 as "ageMs"
  from edge left join pg_stat_activity a on a.backend_xid = edge.horizon::xid
    left join pg_prepared_xacts p on p.transaction = edge.horizon::xid
  limit 1`;

// What nobody can read yet does not count against anybody.
const BEHIND = `
  select w.name, coalesce(greatest(date_part('epoch', carillon.now() - f.at) * 1000, 0), 0) as "lagMs",
    date_part('epoch', carillon.now() - w.missed_at) * 1000 as "missedMs"
  from carillon.followers w left join carillon.epochs e on e.epoch = w.epoch
  left join lateral (
    select at from carillon.feed where cluster = e.cluster and (key, seq) >= (w.key, w.seq)
      and (e.started_at <> pg_postmaster_start_time() or key < pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
    order by key, seq limit 1
  ) f on true
  order by w.name`;

export async function readFeedStanding(db: Queryable): Promise<FeedStanding> {
  const { rows } = await db.query<{ heldMs: number } & Holder>({ name: "carillon-feed-held", text: HELD });
  const { heldMs = 0, ...holder } = rows[0] ?? { pid: null, gid: null, ageMs: null };
  const isHeld = holder.pid !== null || holder.gid !== null;
  const { rows: followers } = await db.query<FollowerStanding>({ name: "carillon-feed-followers", text: BEHIND });
  return { heldMs: Math.max(0, heldMs), holder: isHeld ? holder : undefined, followers };
}
