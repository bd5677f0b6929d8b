// What is kept from being claimed. Every claim looks at the table, which is empty as a rule.

import type { Pausable, Pause } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";

/** When the pause ends the scheduler looks: it is told now. */
export async function pause(db: Queryable, { kind, name }: Pausable, { reason, until, by }: Pause): Promise<void> {
  await db.query(
    `with paused as (
       insert into carillon.pauses (kind, name, reason, until, paused_by) values ($1, $2, $3, $4, $5)
       on conflict (kind, name) do update set reason = excluded.reason, until = excluded.until, paused_by = excluded.paused_by
       returning until
     )
     select pg_notify('carillon_due', floor(date_part('epoch', until) * 1000)::bigint::text) from paused where until is not null`,
    [kind, name, reason, until ?? null, by ?? null],
  );
}

/** Whoever sleeps is told, in the transaction: it is rare. */
export async function resume(db: Queryable, { kind, name }: Pausable): Promise<boolean> {
  const { rows } = await db.query(
    `with resumed as (
       delete from carillon.pauses where kind = $1 and name = $2 returning until is null or until > carillon.now() as was_paused
     )
     select was_paused, pg_notify('carillon_ready', ''), pg_notify('carillon_due', '') from resumed`,
    [kind, name],
  );
  return rows.some(({ was_paused }) => was_paused);
}
