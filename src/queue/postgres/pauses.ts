// Lanes of which nothing is claimed. Every claim looks at the table, which is empty as a rule.

import type { Takes } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";

export async function pause(db: Queryable, { ranks }: Takes, reason: string): Promise<void> {
  await db.query(
    `insert into carillon.queue_pauses (priority, reason) select unnest($1::smallint[]), $2
     on conflict (priority) do nothing`,
    [ranks, reason],
  );
}

/** Whoever sleeps is told, in the transaction: it is rare. */
export async function resume(db: Queryable, { ranks }: Takes): Promise<void> {
  await db.query(
    `with resumed as (delete from carillon.queue_pauses where priority = any ($1::smallint[]) returning priority)
     select pg_notify(channel, '') from unnest(array['carillon_ready', 'carillon_due']) as channel where exists (select from resumed)`,
    [ranks],
  );
}
