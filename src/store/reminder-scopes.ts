// Default offsets of scopes, and the work that a change of them leaves behind.

import { TENANT_SCOPE } from "#domain/reminder.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "./due.ts";
import type { StoredReminder } from "./reminders.ts";

export type Replan = { done: number; total: number; startedAt: Date; finishedAt: Date | null };
export type StoredScope = { scope: string; before: string[]; updatedAt: Date; replan: Replan | null };

const COLUMNS = `s.scope, s.before, s.updated_at as "updatedAt", case when p.scope is not null then json_build_object(
  'done', p.done, 'total', p.total, 'startedAt', p.started_at, 'finishedAt', p.finished_at) end as replan`;
const FROM = "carillon.reminder_scopes s left join carillon.replans p on p.tenant = s.tenant and p.scope = s.scope";

type Row = Omit<StoredScope, "replan"> & {
  replan: { done: number; total: number; startedAt: string; finishedAt: string | null } | null;
};
const scopeOf = ({ replan, ...scope }: Row): StoredScope => ({
  ...scope,
  replan: replan && {
    ...replan,
    startedAt: new Date(replan.startedAt),
    finishedAt: replan.finishedAt === null ? null : new Date(replan.finishedAt),
  },
});

/** False when nothing changed, and so nothing is to be re-planned. */
export async function putScope(tx: Queryable, tenant: number, scope: string, before: string[]): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into carillon.reminder_scopes as s (tenant, scope, before) values ($1, $2, $3)
     on conflict (tenant, scope) do update set before = $3, updated_at = carillon.now() where s.before <> $3`,
    [tenant, scope, before],
  );
  return (rowCount ?? 0) > 0;
}

export async function findScope(db: Queryable, tenant: number, scope: string): Promise<StoredScope | undefined> {
  const { rows } = await db.query<Row>(`select ${COLUMNS} from ${FROM} where s.tenant = $1 and s.scope = $2`, [
    tenant,
    scope,
  ]);
  return rows[0] && scopeOf(rows[0]);
}

export async function listScopes(
  db: Queryable,
  tenant: number,
  afterScope: string,
  limit: number,
): Promise<StoredScope[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from ${FROM} where s.tenant = $1 and s.scope > $2 order by s.scope limit $3`,
    [tenant, afterScope, limit],
  );
  return rows.map(scopeOf);
}

export async function deleteScope(tx: Queryable, tenant: number, scope: string): Promise<boolean> {
  const { rowCount } = await tx.query("delete from carillon.reminder_scopes where tenant = $1 and scope = $2", [
    tenant,
    scope,
  ]);
  return (rowCount ?? 0) > 0;
}

/** The reminders that might inherit from a scope, in order of their keys. */
const members = (scope: string): string =>
  scope === TENANT_SCOPE
    ? "select key from carillon.reminders where tenant = $1"
    : "select key from carillon.scope_members where tenant = $1 and scope = $2";

/** Begins at the beginning; a re-plan of the same scope that is under way is superseded. */
export async function startReplan(tx: Queryable, tenant: number, scope: string): Promise<void> {
  await tx.query(
    `insert into carillon.replans (tenant, scope, total, finished_at)
     select $1, $2, n, case when n = 0 then carillon.now() end from (
       select count(*)::int as n from (${members(scope)}) x where $2::text is not null) counted
     on conflict (tenant, scope) do update set reached = '', done = 0, total = excluded.total, started_at = carillon.now(),
       finished_at = excluded.finished_at, put_off_until = null`,
    [tenant, scope],
  );
}

export type ReplanStep = { tenant: number; scope: string; reached: string };

export const nextReplan = (db: Queryable): Promise<Next> =>
  readNext(
    db,
    "replan",
    "select min(greatest(started_at, put_off_until)) from carillon.replans where finished_at is null",
  );

/** A tenant with something to re-plan. */
export async function peekReplan(tx: Queryable): Promise<number | undefined> {
  const { rows } = await tx.query<{ tenant: number }>(
    `select tenant from carillon.replans where finished_at is null and greatest(started_at, put_off_until) <= carillon.now()
     order by greatest(started_at, put_off_until) limit 1`,
  );
  return rows[0]?.tenant;
}

/** The tenant's next that nobody else is at, locked. */
export async function takeReplan(tx: Queryable, tenant: number): Promise<ReplanStep | undefined> {
  const { rows } = await tx.query<ReplanStep>(
    `select tenant, scope, reached from carillon.replans where finished_at is null and tenant = $1
     order by greatest(started_at, put_off_until) limit 1 for update skip locked`,
    [tenant],
  );
  return rows[0];
}

export async function nextMembers(
  tx: Queryable,
  { tenant, scope, reached }: ReplanStep,
  limit: number,
): Promise<StoredReminder[]> {
  const { rows } = await tx.query<StoredReminder>(
    `select r.tenant, r.key, r.at, r.timezone, r.before, r.scopes, r.offsets, r.offsets_from as "offsetsFrom"
     from carillon.reminders r where r.tenant = $1 and r.key in (
       select key from (${members(scope)} and $2::text is not null) m where key > $3 order by key limit $4)
     order by r.key for update`,
    [tenant, scope, reached, limit],
  );
  return rows;
}

export async function setOffsets(
  tx: Queryable,
  tenant: number,
  changes: { key: string; before: string[]; from: string }[],
): Promise<void> {
  await tx.query(
    `update carillon.reminders r set offsets = x.before, offsets_from = x.from
     from json_to_recordset($2) as x(key text, before text[], "from" text) where r.tenant = $1 and r.key = x.key`,
    [tenant, JSON.stringify(changes)],
  );
}

export async function recordReplan(
  tx: Queryable,
  { tenant, scope }: ReplanStep,
  { reached, done, isOver }: { reached: string; done: number; isOver: boolean },
): Promise<void> {
  await tx.query(
    `update carillon.replans set reached = $3, done = done + $4, finished_at = case when $5 then carillon.now() end,
       put_off_until = carillon.now()
     where tenant = $1 and scope = $2`,
    [tenant, scope, reached, done, isOver],
  );
}

/** A tenant's could not be done. They are tried again in a while, and hold up nobody else's. */
export async function putOffReplans(db: Queryable, tenant: number): Promise<void> {
  await db.query(
    `update carillon.replans set put_off_until = carillon.now() + interval '1 minute'
     where tenant = $1 and finished_at is null`,
    [tenant],
  );
}
