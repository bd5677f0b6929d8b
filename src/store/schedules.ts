// Recurring schedules and their runs.

import type { Notice } from "#domain/notice.ts";
import type { CatchUp, Schedule } from "#domain/schedule.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "./due.ts";

export type StoredSchedule = Schedule & {
  tenant: number;
  key: string;
  catchUp: CatchUp;
  notice: Notice;
  nextAt: Date | null;
  pausedAt: Date | null;
  /** Why it could not be fired the last time, and when that is tried again. */
  error: string | null;
  retryAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};
export type Run = {
  tick: Date;
  at: Date;
  outcome: "sending" | "sent" | "skipped" | "failed";
  skipped: number;
  notifications: string[];
  error: string | null;
};

const COLUMNS = `tenant, key, cron, every, timezone, from_at as "from", until_at as "until", catch_up as "catchUp", notice,
  next_at as "nextAt", paused_at as "pausedAt", error, put_off_until as "retryAt", created_at as "createdAt", updated_at as "updatedAt"`;

/** Locks it for the rest of the transaction: a firing and a change of the same schedule come one after the other. */
export async function lockSchedule(tx: Queryable, tenant: number, key: string): Promise<StoredSchedule | undefined> {
  const { rows } = await tx.query<StoredSchedule>(
    `select ${COLUMNS} from carillon.schedules where tenant = $1 and key = $2 for update`,
    [tenant, key],
  );
  return rows[0];
}

export async function findSchedule(db: Queryable, tenant: number, key: string): Promise<StoredSchedule | undefined> {
  const { rows } = await db.query<StoredSchedule>(
    `select ${COLUMNS} from carillon.schedules where tenant = $1 and key = $2`,
    [tenant, key],
  );
  return rows[0];
}

/** In order of their keys, from after `afterKey`. */
export async function listSchedules(
  db: Queryable,
  tenant: number,
  afterKey: string,
  limit: number,
): Promise<StoredSchedule[]> {
  const { rows } = await db.query<StoredSchedule>(
    `select ${COLUMNS} from carillon.schedules where tenant = $1 and key > $2 order by key limit $3`,
    [tenant, afterKey, limit],
  );
  return rows;
}

export type NewSchedule = Omit<StoredSchedule, "pausedAt" | "error" | "retryAt" | "createdAt" | "updatedAt">;

/** A change takes effect at once and does not resume what is paused. */
export async function putSchedule(tx: Queryable, schedule: NewSchedule): Promise<StoredSchedule> {
  const { tenant, key, cron, every, timezone, from, until, catchUp, notice, nextAt } = schedule;
  const { rows } = await tx.query<StoredSchedule>(
    `insert into carillon.schedules as s (tenant, key, cron, every, timezone, from_at, until_at, catch_up, notice, next_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (tenant, key) do update set cron = $3, every = $4, timezone = $5, from_at = $6, until_at = $7, catch_up = $8,
       notice = $9, next_at = case when s.paused_at is null then $10::timestamptz end, put_off_until = null, failures = 0, error = null,
       updated_at = carillon.now()
     returning ${COLUMNS}`,
    [tenant, key, cron, every, timezone, from, until, catchUp, JSON.stringify(notice), nextAt],
  );
  return rows[0] as StoredSchedule;
}

/** Paused, or going on at `nextAt`. Ticks that were put off are not made up for. */
export async function setPaused(
  tx: Queryable,
  tenant: number,
  key: string,
  isPaused: boolean,
  nextAt: Date | null,
): Promise<void> {
  await tx.query(
    `update carillon.schedules set paused_at = case when $3 then carillon.now() end,
       next_at = case when not $3 then $4::timestamptz end, put_off_until = null, failures = 0, error = null
     where tenant = $1 and key = $2`,
    [tenant, key, isPaused, nextAt],
  );
}

export async function deleteSchedule(db: Queryable, tenant: number, key: string): Promise<boolean> {
  const { rowCount } = await db.query("delete from carillon.schedules where tenant = $1 and key = $2", [tenant, key]);
  return (rowCount ?? 0) > 0;
}

export const nextSchedule = (db: Queryable): Promise<Next> =>
  readNext(
    db,
    "schedule",
    "select min(greatest(next_at, put_off_until)) from carillon.schedules where next_at is not null",
  );

/** Whose turn has come, of each tenant so many, so that one tenant's many do not hold up the others. */
export async function dueSchedules(db: Queryable, ofEach: number): Promise<{ tenant: number; key: string }[]> {
  const { rows } = await db.query<{ tenant: number; key: string }>(
    `select due.tenant, due.key from carillon.tenants t cross join lateral (
       select tenant, key, greatest(next_at, put_off_until) as turn from carillon.schedules
       where tenant = t.id and next_at is not null and greatest(next_at, put_off_until) <= carillon.now()
       order by greatest(next_at, put_off_until) limit $1) due
     order by due.tenant, due.turn`,
    [ofEach],
  );
  return rows;
}

export type DueSchedule = StoredSchedule & { nextAt: Date; now: Date };

const DUE = `select ${COLUMNS}, carillon.now() as now from carillon.schedules
  where tenant = $1 and key = $2 and greatest(next_at, put_off_until) <= carillon.now() and next_at is not null`;

export async function readDueSchedule(db: Queryable, tenant: number, key: string): Promise<DueSchedule | undefined> {
  const { rows } = await db.query<DueSchedule>(DUE, [tenant, key]);
  return rows[0];
}

/** Locked, if it is still due and no other scheduler has it in hand. */
export async function takeDueSchedule(tx: Queryable, tenant: number, key: string): Promise<DueSchedule | undefined> {
  const { rows } = await tx.query<DueSchedule>(`${DUE} for update skip locked`, [tenant, key]);
  return rows[0];
}

/** False when the tick has been run before: then nothing may be sent for it. */
export async function beginRun(tx: Queryable, tenant: number, key: string, tick: Date): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into carillon.runs (tenant, key, tick, outcome, skipped) values ($1, $2, $3, 'skipped', 0) on conflict do nothing`,
    [tenant, key, tick],
  );
  return (rowCount ?? 0) > 0;
}

/** What became of the run, if there was one, and when the next will be. */
export async function endRun(
  tx: Queryable,
  tenant: number,
  key: string,
  run: Omit<Run, "at"> | undefined,
  nextAt: Date | null,
): Promise<void> {
  await tx.query(
    `with run as (
       update carillon.runs set outcome = $4, skipped = $5, notifications = $6, error = $7
       where tenant = $1 and key = $2 and tick = $3
     )
     update carillon.schedules set next_at = $8, put_off_until = null, failures = 0, error = null
     where tenant = $1 and key = $2`,
    [tenant, key, run?.tick, run?.outcome, run?.skipped, run?.notifications, run?.error, nextAt],
  );
}

/** It could not be fired: the longer that goes on, the more seldom it is tried. */
export async function putOffSchedule(db: Queryable, tenant: number, key: string, error: string): Promise<void> {
  await db.query(
    `update carillon.schedules set put_off_until = carillon.now() + carillon.backoff(failures),
       failures = failures + 1, error = $3 where tenant = $1 and key = $2`,
    [tenant, key, error],
  );
}

/** The latest first, from before `before`. */
export async function listRuns(
  db: Queryable,
  tenant: number,
  key: string,
  before: Date | undefined,
  limit: number,
): Promise<Run[]> {
  const { rows } = await db.query<Run>(
    `select tick, at, outcome, skipped, notifications, error from carillon.runs
     where tenant = $1 and key = $2 and ($3::timestamptz is null or tick < $3) order by tick desc limit $4`,
    [tenant, key, before ?? null, limit],
  );
  return rows;
}
