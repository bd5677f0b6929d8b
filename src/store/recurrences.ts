// Recurring schedules and their runs.

import type { Notice } from "../domain/notice.ts";
import type { CatchUp, Recurrence } from "../domain/recurrence.ts";
import type { Queryable } from "./database.ts";

export type StoredRecurrence = Recurrence & {
  tenant: number;
  key: string;
  catchUp: CatchUp;
  notice: Notice;
  nextAt: Date | null;
  pausedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
};
export type Run = {
  tick: Date;
  at: Date;
  outcome: "sent" | "skipped" | "failed";
  skipped: number;
  notifications: string[];
  error: string | null;
};

const COLUMNS = `tenant, key, cron, every, timezone, from_at as "from", until_at as "until", catch_up as "catchUp", notice,
  next_at as "nextAt", paused_at as "pausedAt", created_at as "createdAt", updated_at as "updatedAt"`;

/** Locks it for the rest of the transaction: a firing and a change of the same schedule come one after the other. */
export async function lockRecurrence(
  tx: Queryable,
  tenant: number,
  key: string,
): Promise<StoredRecurrence | undefined> {
  const { rows } = await tx.query<StoredRecurrence>(
    `select ${COLUMNS} from carillon.recurrences where tenant = $1 and key = $2 for update`,
    [tenant, key],
  );
  return rows[0];
}

export async function findRecurrence(
  db: Queryable,
  tenant: number,
  key: string,
): Promise<StoredRecurrence | undefined> {
  const { rows } = await db.query<StoredRecurrence>(
    `select ${COLUMNS} from carillon.recurrences where tenant = $1 and key = $2`,
    [tenant, key],
  );
  return rows[0];
}

/** In order of their keys, from after `afterKey`. */
export async function listRecurrences(
  db: Queryable,
  tenant: number,
  afterKey: string,
  limit: number,
): Promise<StoredRecurrence[]> {
  const { rows } = await db.query<StoredRecurrence>(
    `select ${COLUMNS} from carillon.recurrences where tenant = $1 and key > $2 order by key limit $3`,
    [tenant, afterKey, limit],
  );
  return rows;
}

export type NewRecurrence = Omit<StoredRecurrence, "pausedAt" | "createdAt" | "updatedAt">;

/** A change takes effect at once and does not resume what is paused. */
export async function putRecurrence(tx: Queryable, recurrence: NewRecurrence): Promise<StoredRecurrence> {
  const { tenant, key, cron, every, timezone, from, until, catchUp, notice, nextAt } = recurrence;
  const { rows } = await tx.query<StoredRecurrence>(
    `insert into carillon.recurrences as r (tenant, key, cron, every, timezone, from_at, until_at, catch_up, notice, next_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (tenant, key) do update set cron = $3, every = $4, timezone = $5, from_at = $6, until_at = $7, catch_up = $8,
       notice = $9, next_at = case when r.paused_at is null then $10::timestamptz end, updated_at = clock_timestamp()
     returning ${COLUMNS}`,
    [tenant, key, cron, every, timezone, from, until, catchUp, JSON.stringify(notice), nextAt],
  );
  return rows[0] as StoredRecurrence;
}

/** With `nextAt` it goes on from there, without it is paused. */
export async function setNext(
  tx: Queryable,
  tenant: number,
  key: string,
  nextAt: Date | null,
  isPaused: boolean,
): Promise<void> {
  await tx.query(
    `update carillon.recurrences set next_at = $3,
       paused_at = case when $4 then coalesce(paused_at, clock_timestamp()) end
     where tenant = $1 and key = $2`,
    [tenant, key, nextAt, isPaused],
  );
}

export async function deleteRecurrence(db: Queryable, tenant: number, key: string): Promise<boolean> {
  const { rowCount } = await db.query("delete from carillon.recurrences where tenant = $1 and key = $2", [tenant, key]);
  return (rowCount ?? 0) > 0;
}

/** Those whose tick has come, locked; what another scheduler has in hand is left to it. */
export async function takeDueRecurrences(tx: Queryable, limit: number): Promise<(StoredRecurrence & { now: Date })[]> {
  const { rows } = await tx.query<StoredRecurrence & { now: Date }>(
    `select ${COLUMNS}, statement_timestamp() as now from carillon.recurrences
     where next_at <= statement_timestamp() order by next_at limit $1 for update skip locked`,
    [limit],
  );
  return rows;
}

/** False when the tick has been run before: then nothing may be sent for it. */
export async function insertRun(tx: Queryable, tenant: number, key: string, run: Omit<Run, "at">): Promise<boolean> {
  const { tick, outcome, skipped, notifications, error } = run;
  const { rowCount } = await tx.query(
    `insert into carillon.runs (tenant, key, tick, outcome, skipped, notifications, error) values ($1, $2, $3, $4, $5, $6, $7)
     on conflict do nothing`,
    [tenant, key, tick, outcome, skipped, notifications, error],
  );
  return (rowCount ?? 0) > 0;
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
