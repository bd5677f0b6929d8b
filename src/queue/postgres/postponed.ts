// Writes into the record, once, that a notification waits for one of our guards; and once that it does because nobody answers.

import type { PostponedNote } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { claimOf, placeOf } from "./handle.ts";

const NOTE = `
  with held as materialized (
    select x.* from json_to_recordset($2) as x(token bigint, place integer, id uuid, tenant integer, attempt smallint, reason text,
      "waitMs" float8, "silentMs" float8)
    cross join lateral (
      select from carillon.claims c where c.token = x.token and get_bit(c.done, x.place) = 0 for share
    ) c
  )
  insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, worker, error, detail)
  select id, tenant, 'postponed', 'processing', 'pending', attempt, $1, reason,
    json_strip_nulls(json_build_object('waitMs', "waitMs", 'silentMs', "silentMs"))
  from held
  where not exists (select from carillon.events e where e.notification_id = held.id and e.type = 'postponed'
    and (held."silentMs" is null or e.detail ->> 'silentMs' is not null))`;

/** Only while the lease is held: a line that came after the ending would hide it. What says it already stays as it is. */
export async function notePostponed(db: Queryable, worker: number, batch: readonly PostponedNote[]): Promise<void> {
  const rows = batch.map(({ attempt, postponed: { reason, waitMs, silentMs } }) => {
    const { id, tenant, number } = attempt;
    return {
      token: claimOf(attempt.lease).token,
      place: placeOf(attempt),
      id,
      tenant,
      attempt: number,
      reason,
      waitMs,
      silentMs,
    };
  });
  // Locked in order of their tokens, as everywhere.
  rows.sort((a, b) => a.token - b.token);
  await db.query({ name: "carillon-postponed", text: NOTE, values: [worker, JSON.stringify(rows)] });
}
