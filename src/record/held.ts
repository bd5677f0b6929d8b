// Since when notifications have been held because nobody answers: the first time that was written of them, or the last time that a
// person began them anew, by a retry or another time.
//
// Only the old ones of a long outage are asked about, so it is read off the record and kept nowhere else.

import type { Queryable } from "#store/connection/database.ts";

const SINCE = `
  select x.id, date_part('epoch', h.since) * 1000 as since from unnest($1::uuid[]) as x(id) cross join lateral (
    select greatest(min(at) filter (where type = 'postponed' and detail ->> 'silentMs' is not null),
      max(at) filter (where type = 'retried'),
      max((detail ->> 'scheduledFor')::timestamptz) filter (where type = 'rescheduled')) as since
    from carillon.events where notification_id = x.id
    having bool_or(type = 'postponed' and detail ->> 'silentMs' is not null)
  ) h`;

/** By the database's clock, for each of them; undefined where it is not written. */
export async function heldSince(db: Queryable, ids: readonly string[]): Promise<(number | undefined)[]> {
  const { rows } = await db.query<{ id: string; since: number }>({
    name: "carillon-held-since",
    text: SINCE,
    values: [ids],
  });
  const since = new Map(rows.map((row) => [row.id, row.since]));
  return ids.map((id) => since.get(id));
}
