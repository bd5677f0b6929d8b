// Reminders, the scopes they inherit from, and their plans.

import type { Notice } from "#domain/notice.ts";
import type { Planned } from "#domain/reminder.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "./due.ts";
import { TELL_DUE } from "./reminder-due.ts";

export type StoredReminder = {
  tenant: number;
  key: string;
  at: Date;
  timezone: string;
  before: string[] | null;
  scopes: string[];
  notice: Notice;
  offsets: string[];
  offsetsFrom: string;
  createdAt: Date;
  updatedAt: Date;
};
export type PlanLine = {
  at: Date;
  before: string;
  dueAt: Date;
  outcome: "sending" | "sent" | "missed" | "failed" | null;
  /** When it is tried again, after it could not be sent. */
  retryAt: Date | null;
  endedAt: Date | null;
  notifications: string[];
  error: string | null;
};
export type DueLine = {
  id: string;
  tenant: number;
  key: string;
  at: Date;
  before: string;
  dueAt: Date;
  notice: Notice;
};

const COLUMNS = `tenant, key, at, timezone, before, scopes, notice, offsets, offsets_from as "offsetsFrom",
  created_at as "createdAt", updated_at as "updatedAt"`;

/**
 * Those who plan go together; who changes a default goes alone. So no plan is made from a default that was changed
 * meanwhile, and then missed by the re-plan that follows the change.
 */
export async function lockDefaults(tx: Queryable, tenant: number, how: "read" | "change"): Promise<void> {
  const lock = how === "read" ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock";
  await tx.query(`select ${lock}(hashtext('carillon.reminder_scopes'), $1)`, [tenant]);
}

export async function findDefaults(tx: Queryable, tenant: number, scopes: string[]): Promise<Map<string, string[]>> {
  const { rows } = await tx.query<{ scope: string; before: string[] }>(
    "select scope, before from carillon.reminder_scopes where tenant = $1 and scope = any ($2)",
    [tenant, scopes],
  );
  return new Map(rows.map(({ scope, before }) => [scope, before]));
}

export async function putReminder(tx: Queryable, reminder: Omit<StoredReminder, "createdAt" | "updatedAt">) {
  const { tenant, key, at, timezone, before, scopes, notice, offsets, offsetsFrom } = reminder;
  const { rows } = await tx.query<StoredReminder & { isNew: boolean }>(
    `insert into carillon.reminders as r (tenant, key, at, timezone, before, scopes, notice, offsets, offsets_from)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (tenant, key) do update set at = $3, timezone = $4, before = $5, scopes = $6, notice = $7, offsets = $8,
       offsets_from = $9, updated_at = carillon.now()
     returning ${COLUMNS}, xmax = 0 as "isNew"`,
    [tenant, key, at, timezone, before, scopes, JSON.stringify(notice), offsets, offsetsFrom],
  );
  await tx.query(
    `with gone as (
       delete from carillon.scope_members where tenant = $1 and key = $2 and scope <> all ($3)
     )
     insert into carillon.scope_members (tenant, scope, key) select $1, scope, $2 from unnest($3::text[]) as scope
     on conflict do nothing`,
    [tenant, key, scopes],
  );
  return rows[0] as StoredReminder & { isNew: boolean };
}

export async function findReminder(db: Queryable, tenant: number, key: string): Promise<StoredReminder | undefined> {
  const { rows } = await db.query<StoredReminder>(
    `select ${COLUMNS} from carillon.reminders where tenant = $1 and key = $2`,
    [tenant, key],
  );
  return rows[0];
}

/** Keeps everybody else from changing it until the transaction ends. */
export async function lockReminder(tx: Queryable, tenant: number, key: string): Promise<StoredReminder | undefined> {
  const { rows } = await tx.query<StoredReminder>(
    `select ${COLUMNS} from carillon.reminders where tenant = $1 and key = $2 for no key update`,
    [tenant, key],
  );
  return rows[0];
}

/** In order of their keys, from after `afterKey`; with a scope, only those that name it. */
export async function listReminders(
  db: Queryable,
  tenant: number,
  scope: string | undefined,
  afterKey: string,
  limit: number,
): Promise<StoredReminder[]> {
  const { rows } = await db.query<StoredReminder>(
    scope === undefined
      ? `select ${COLUMNS} from carillon.reminders where tenant = $1 and key > $2 order by key limit $3`
      : `select ${COLUMNS} from carillon.reminders where tenant = $1 and key in (
           select key from carillon.scope_members where tenant = $1 and scope = $4 and key > $2 order by key limit $3)
         order by key`,
    scope === undefined ? [tenant, afterKey, limit] : [tenant, afterKey, limit, scope],
  );
  return rows;
}

/** What was planned goes with it; what was sent is in the record of notifications. */
export async function deleteReminder(db: Queryable, tenant: number, key: string): Promise<boolean> {
  const { rowCount } = await db.query("delete from carillon.reminders where tenant = $1 and key = $2", [tenant, key]);
  return (rowCount ?? 0) > 0;
}

/**
 * Puts new plans in the place of the old ones, for several reminders at once. A line that is being sent at this moment is
 * waited for, and then stays as it is.
 */
export async function replacePlans(
  tx: Queryable,
  tenant: number,
  plans: { key: string; at: Date; lines: Planned[] }[],
): Promise<void> {
  await tx.query("delete from carillon.reminder_plan where tenant = $1 and key = any ($2) and outcome is null", [
    tenant,
    plans.map(({ key }) => key),
  ]);
  const lines = plans.flatMap(({ key, at, lines }) => lines.map((line) => ({ key, at, ...line })));
  await tx.query(
    `insert into carillon.reminder_plan (tenant, key, at, before, due_at)
     select $1, x.* from json_to_recordset($2) as x(key text, at timestamptz, before text, "dueAt" timestamptz)
     on conflict do nothing`,
    [tenant, JSON.stringify(lines)],
  );
}

export async function findPlan(db: Queryable, tenant: number, key: string): Promise<PlanLine[]> {
  const { rows } = await db.query<PlanLine>(
    `select at, before, due_at as "dueAt", outcome, put_off_until as "retryAt", ended_at as "endedAt", notifications, error
     from carillon.reminder_plan where tenant = $1 and key = $2 order by due_at, before limit 1000`,
    [tenant, key],
  );
  return rows;
}

export const nextLine = (db: Queryable): Promise<Next> =>
  readNext(db, "line", "select min(greatest(due_at, put_off_until)) from carillon.reminder_plan where outcome is null");

export type DueRef = { id: string; tenant: number; bytes: number };

/** Whose turn has come, without what they say: of each tenant so many, so that one tenant's many do not hold up the others. */
export async function dueLines(db: Queryable, ofEach: number): Promise<DueRef[]> {
  const { rows } = await db.query<DueRef>(
    `select due.id, due.tenant, r.bytes::float8 as bytes from carillon.tenants t cross join lateral (
       select id, tenant, key, greatest(due_at, put_off_until) as turn from carillon.reminder_plan
       where tenant = t.id and outcome is null and greatest(due_at, put_off_until) <= carillon.now()
       order by greatest(due_at, put_off_until) limit $1) due
     join carillon.reminders r on r.tenant = due.tenant and r.key = due.key
     order by due.tenant, due.turn`,
    [ofEach],
  );
  return rows;
}

/** Not locked yet. Any change of a reminder takes the lines that are open away and puts others in their place. */
export async function readLines(db: Queryable, ids: readonly string[]): Promise<DueLine[]> {
  const { rows } = await db.query<DueLine>(
    `select p.id, p.tenant, p.key, p.at, p.before, p.due_at as "dueAt", r.notice
     from carillon.reminder_plan p join carillon.reminders r on r.tenant = p.tenant and r.key = p.key
     where p.id = any ($1) and p.outcome is null order by p.due_at`,
    [ids],
  );
  return rows;
}

/** Those that are still to be sent and in nobody else's hand, locked; and the time. */
export async function lockLines(tx: Queryable, ids: readonly string[]): Promise<{ held: Set<string>; now: Date }> {
  const { rows } = await tx.query<{ id: string; now: Date }>(
    `select id, carillon.now() as now from carillon.reminder_plan where id = any ($1) and outcome is null
     order by id for update skip locked`,
    [ids],
  );
  return { held: new Set(rows.map(({ id }) => id)), now: rows[0]?.now ?? new Date(0) };
}

/** It could not be sent: it is tried again later, and given up after `mostFailures`. */
export async function putOffLine(db: Queryable, id: string, error: string, mostFailures: number): Promise<void> {
  await db.query(
    `update carillon.reminder_plan set put_off_until = carillon.now() + carillon.backoff(failures),
       failures = failures + 1, error = $2, outcome = case when failures + 1 >= $3 then 'failed' end,
       ended_at = case when failures + 1 >= $3 then carillon.now() end
     where id = $1 and outcome is null`,
    [id, error, mostFailures],
  );
}

export type EndedLine = Pick<DueLine, "id" | "tenant" | "key" | "at" | "before"> & {
  outcome: NonNullable<PlanLine["outcome"]>;
  notifications: string[];
  error: string | null;
};

/** Ends the lines, and leaves a reminder.due in the record of each notification. */
export async function endLines(tx: Queryable, lines: EndedLine[]): Promise<void> {
  await tx.query(
    `with ended as (
       select * from json_to_recordset($1) as x(id bigint, tenant integer, key text, at timestamptz, before text, outcome text,
         notifications uuid[], error text)
     ), due as (
       select ended.*, sent from ended, unnest(notifications) as sent
     ), told as (${TELL_DUE})
     update carillon.reminder_plan p set outcome = e.outcome, ended_at = carillon.now(), notifications = e.notifications,
       error = e.error
     from ended e where p.id = e.id`,
    [JSON.stringify(lines)],
  );
}
