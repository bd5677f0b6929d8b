// What the tables need now and then. Every action is safe when two processes take it at once, and goes on in small steps: a
// step is one short statement, whatever there is to do, and says how much it did.

import type { Queryable } from "#store/connection/database.ts";

export type Steps = AsyncGenerator<number, void>;

/** Batch after batch, until one is not full. */
export async function* inBatches(size: number, act: (count: number) => Promise<number>): Steps {
  for (let done = size; done >= size; ) {
    done = await act(size);
    yield done;
  }
}

/** A partition that fails does not keep the others from their turn, but for what ends all of them; it is told of at the end. */
export async function* eachAlone(
  partitions: Iterable<Steps>,
  endsAll: (error: unknown) => boolean = () => false,
): Steps {
  const failures: unknown[] = [];
  for (const steps of partitions) {
    try {
      yield* steps;
    } catch (error) {
      if (endsAll(error)) throw error;
      failures.push(error);
      // Others may have waited for as long as that took.
      yield 0;
    }
  }
  if (failures.length > 0)
    throw new Error(`partitions that could not be done: ${failures.length}`, { cause: failures[0] });
}

const WEEKS_BEHIND = 1;
const WEEKS_AHEAD = 8;

/** Partitions for the weeks to come. Does nothing while there are enough. */
export function makePartitions(db: Queryable): Steps {
  const weeks = Array.from({ length: WEEKS_BEHIND + 1 + WEEKS_AHEAD }, (_, n) => n - WEEKS_BEHIND);
  return eachAlone(weeks.map((week) => makePartition(db, week)));
}

async function* makePartition(db: Queryable, week: number): Steps {
  const { rows } = await db.query<{ made: number }>(
    "select carillon.make_partitions(at, at) as made from (select carillon.now() + $1 * interval '7 days' as at) week",
    [week],
  );
  yield rows[0]?.made ?? 0;
}

/** Forgets idempotency keys that have expired, a batch at a time; returns how many. */
export async function forgetExpiredKeys(db: Queryable, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.idempotency where (tenant, key) in (
       select tenant, key from carillon.idempotency where expires_at <= carillon.now() limit $1 for update skip locked)`,
    [batch],
  );
  return rowCount ?? 0;
}

/** Weeks that are older than the retention, the oldest first, and the instant that it reaches back to. */
export async function findOldWeeks(db: Queryable, days: number): Promise<{ before: Date; weeks: string[] }> {
  const { rows } = await db.query<{ before: Date; weeks: string[] }>(
    `select before, array(
       select right(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = 'carillon.notifications'::regclass and c.relname ~ '^notifications_[0-9]{8}$'
         and carillon.week_starts(right(c.relname, 8)) + interval '7 days' <= before
         and not exists (select from carillon.archive_weeks w
           where w.week = right(c.relname, 8) and w.keep_until > carillon.now())
       order by 1) as weeks
     from (select carillon.now() - $1 * interval '1 day' as before) retention`,
    [days],
  );
  return rows[0] ?? { before: new Date(0), weeks: [] };
}

/**
 * Ends the keeping of what is older than the retention. A week is dropped whole, and the few of it that still wait move on to the default
 * partition; of a week of which more wait, and of the default partition, those rows go that are over.
 */
export async function* retire(db: Queryable, days: number, batch: number): Steps {
  const { before, weeks } = await findOldWeeks(db, days);
  const each = weeks.map((week) => retireWeek(db, week, before, batch));
  yield* eachAlone([...each, thin(db, "default", before, batch)]);
}

async function* retireWeek(db: Queryable, week: string, before: Date, batch: number): Steps {
  if (await dropWeek(db, week, batch)) yield 1;
  else yield* thin(db, week, before, batch);
}

/** False where more of it wait than that, and then nothing is changed. */
export async function dropWeek(db: Queryable, week: string, most: number): Promise<boolean> {
  const { rows } = await db.query<{ dropped: boolean }>("select carillon.retire_week($1, $2) as dropped", [week, most]);
  return rows[0]?.dropped ?? false;
}

type Thinned = { deleted: number; tenant: number | null; id: string | null };

/** Comes before every notification: callbacks are of tenants below zero. */
export const BEFORE_ALL = { tenant: -2_147_483_648, id: "00000000-0000-0000-0000-000000000000" };

export async function* thin(db: Queryable, part: string, before: Date, batch: number): Steps {
  let place = BEFORE_ALL;
  for (;;) {
    const { rows } = await db.query<Thinned>(
      "select deleted, last_tenant as tenant, last_id as id from carillon.thin($1, $2, $3, $4, $5)",
      [part, before, place.tenant, place.id, batch],
    );
    const { deleted = 0, tenant = null, id = null } = rows[0] ?? {};
    yield deleted;
    if (tenant === null || id === null) return;
    place = { tenant, id };
  }
}

/** Forgets runs of schedules, and reminders with their plans, whose time lies further back than the retention. */
export async function forgetPast(db: Queryable, days: number, batch: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `with past as (select carillon.now() - $1 * interval '1 day' as at), runs as (
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
