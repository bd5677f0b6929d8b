// How far sinks are behind: how long ago that happened which each could read next, and how many facts it has not had.

import type { Queryable } from "#store/connection/database.ts";

export type SinkLag = { sink: string; ms: number; facts: number };

/** Counted up to here. */
export const MOST_COUNTED = 10_000;

// A row has a fact at least. What nobody can read yet does not count against anybody.
const LAGS = `
  select substr(w.name, length($1) + 2) as sink, coalesce(greatest(date_part('epoch', carillon.now() - f.at) * 1000, 0), 0) as ms,
    least(greatest(f.facts - w.ordinal, 0), ${MOST_COUNTED})::float8 as facts
  from carillon.followers w left join carillon.epochs e on e.epoch = w.epoch
  cross join lateral (
    select (array_agg(r.at order by r.key, r.seq))[1] as at, coalesce(sum(r.size), 0) as facts from (
      select key, seq, at, size from carillon.feed where cluster = e.cluster and (key, seq) >= (w.key, w.seq)
        and (e.started_at <> pg_postmaster_start_time() or key < pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
      order by key, seq limit ${MOST_COUNTED}
    ) r
  ) f
  where starts_with(w.name, $1 || ' ')`;

/** Of those that have read anything. Facts of every type count, also of those that a sink leaves out. */
export async function readSinkLags(db: Queryable): Promise<SinkLag[]> {
  const { rows } = await db.query<SinkLag>(LAGS, ["sink"]);
  return rows;
}
