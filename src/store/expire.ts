// Ends what waited past its time.

import type { Queryable } from "#store/connection/database.ts";

/** What never got its turn; returns how many. A claim that races for the same row wins or loses as a whole. */
export async function expireWaiting(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query({
    name: "carillon-expire",
    text: `with late as materialized (
        select ctid as place from carillon.ready where expires_at <= statement_timestamp() limit $1 for update skip locked
      ), later as materialized (
        select ctid as place from carillon.later where expires_at <= statement_timestamp() limit $1 for update skip locked
      ), ready as (
        delete from carillon.ready where ctid = any (array(select place from late))
        returning id, tenant, 'queued'::carillon.status as was
      ), scheduled as (
        delete from carillon.later where ctid = any (array(select place from later))
        returning id, tenant, carillon.waits_as(due_at) as was
      )
      insert into carillon.events (notification_id, tenant, type, from_status, to_status)
      select id, tenant, 'expired', was, 'expired' from (table ready union all table scheduled) gone`,
    values: [limit],
  });
  return rowCount ?? 0;
}
