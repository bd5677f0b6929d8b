// Takes a notification that waits out of the queue, for good.

import type { Queryable } from "#store/connection/database.ts";

/**
 * True when this call cancelled it. A claim and a cancel race for the same row of the queue, and
 * whoever deletes it has won: it is never both cancelled and sent.
 */
export async function cancelWaiting(db: Queryable, tenant: number, id: string): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "carillon-cancel",
    text: `with n as (
        select seq from carillon.notifications where tenant = $1 and id = $2
      ), ready as (
        delete from carillon.ready where priority in (0, 1, 2, 3) and seq = (select seq from n) returning 'queued'::carillon.status as was
      ), scheduled as (
        delete from carillon.later where seq = (select seq from n) returning carillon.waits_as(due_at) as was
      )
      insert into carillon.events (notification_id, tenant, type, from_status, to_status)
      select $2, $1, 'cancelled', was, 'cancelled' from (table ready union all table scheduled) gone`,
    values: [tenant, id],
  });
  return (rowCount ?? 0) > 0;
}
