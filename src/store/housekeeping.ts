// What the tables need now and then. Every action is safe when two processes take it at once.

import type { Queryable } from "./database.ts";

/** Partitions for the weeks to come. Does nothing while there are enough. */
export async function makePartitions(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ made: number }>(
    "select carillon.make_partitions(now() - interval '7 days', now() + interval '56 days') as made",
  );
  return rows[0]?.made ?? 0;
}

/** Forgets idempotency keys that have expired, a batch at a time; returns how many. */
export async function forgetExpiredKeys(db: Queryable, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.idempotency where (tenant, key) in (
       select tenant, key from carillon.idempotency where expires_at <= now() limit $1 for update skip locked)`,
    [batch],
  );
  return rowCount ?? 0;
}

/** Ends the keeping of weeks that are older than the retention; returns how many notifications or weeks went. */
export async function retire(db: Queryable, days: number): Promise<number> {
  const { rows } = await db.query<{ retired: number }>(
    "select carillon.retire(now() - $1 * interval '1 day') as retired",
    [days],
  );
  return rows[0]?.retired ?? 0;
}

/** Forgets runs of schedules, and reminders with their plans, whose time lies further back than the retention. */
export async function forgetPast(db: Queryable, days: number, batch: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `with past as (select now() - $1 * interval '1 day' as at), runs as (
       delete from carillon.runs where ctid = any (array(
         select ctid from carillon.runs where at <= (select at from past) limit $2 for update skip locked)) returning 1
     ), reminders as (
       delete from carillon.reminders where ctid = any (array(
         select ctid from carillon.reminders where at <= (select at from past) limit $2 for update skip locked)) returning 1
     )
     select greatest((select count(*) from runs), (select count(*) from reminders))::int as n`,
    [days, batch],
  );
  return rows[0]?.n ?? 0;
}
