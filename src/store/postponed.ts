// Writes into the record, once, that a notification waits for one of our guards.

import type { Queryable } from "#store/connection/database.ts";

export type PostponedRow = {
  token: number;
  place: number;
  id: string;
  tenant: number;
  attempt: number;
  worker: number;
  reason: string;
  waitMs: number;
};

/** Only while the lease is held: a line that came after the ending would hide it. What says it already stays as it is. */
export async function recordPostponed(db: Queryable, rows: readonly PostponedRow[]): Promise<void> {
  await db.query({
    name: "carillon-postponed",
    text: `with held as materialized (
        select x.* from json_to_recordset($1) as x(token bigint, place integer, id uuid, tenant integer, attempt smallint,
          worker integer, reason text, "waitMs" float8)
        cross join lateral (
          select from carillon.claims c where c.token = x.token and get_bit(c.done, x.place) = 0 for share
        ) c
      )
      insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, worker, error, detail)
      select id, tenant, 'postponed', 'processing', 'pending', attempt, worker, reason, json_build_object('waitMs', "waitMs")
      from held
      where not exists (select from carillon.events e where e.notification_id = held.id and e.type = 'postponed')`,
    // Locked in order of their tokens, as everywhere.
    values: [JSON.stringify([...rows].sort((a, b) => a.token - b.token))],
  });
}
