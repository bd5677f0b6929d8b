// Tenants: who a notification belongs to. Named by people, numbered in the tables.

import type { Queryable } from "#store/connection/database.ts";

export type TenantRow = { name: string; weight: number; createdAt: Date };

const COLUMNS = `name, weight, created_at as "createdAt"`;

export async function findTenant(db: Queryable, name: string): Promise<number | undefined> {
  const { rows } = await db.query<{ id: number }>("select id from carillon.tenants where name = $1", [name]);
  return rows[0]?.id;
}

export async function findTenantNames(db: Queryable, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.query<{ id: number; name: string }>(
    "select id, name from carillon.tenants where id = any ($1)",
    [ids],
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** By name, of those that there are. */
export async function findTenantIds(db: Queryable, names: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: number; name: string }>(
    "select id, name from carillon.tenants where name = any ($1)",
    // What PostgreSQL cannot hold is nobody's name.
    [names.filter((name) => !name.includes("\0"))],
  );
  return new Map(rows.map(({ id, name }) => [name, id]));
}

/** Finds the tenant, and keeps everybody else who locks it waiting until the transaction ends. Sends do not. */
export async function lockTenant(tx: Queryable, name: string): Promise<number | undefined> {
  const { rows } = await tx.query<{ id: number }>("select id from carillon.tenants where name = $1 for no key update", [
    name,
  ]);
  return rows[0]?.id;
}

/** Finds the tenant, or makes it. */
export async function ensureTenant(db: Queryable, name: string): Promise<{ id: number; isNew: boolean }> {
  const found = await findTenant(db, name);
  if (found !== undefined) return { id: found, isNew: false };
  const { rowCount } = await db.query("insert into carillon.tenants (name) values ($1) on conflict (name) do nothing", [
    name,
  ]);
  return { id: (await findTenant(db, name)) as number, isNew: rowCount === 1 };
}

/** By tenant, of those whose weight is not 1. */
export async function readWeights(db: Queryable): Promise<Map<number, number>> {
  const { rows } = await db.query<{ id: number; weight: number }>(
    "select id, weight from carillon.tenants where weight <> 1",
  );
  return new Map(rows.map(({ id, weight }) => [id, weight]));
}

/** In order of their names, from after `afterName`. */
export async function listTenants(db: Queryable, afterName: string, limit: number): Promise<TenantRow[]> {
  const { rows } = await db.query<TenantRow>(
    `select ${COLUMNS} from carillon.tenants where name > $1 order by name limit $2`,
    [afterName, limit],
  );
  return rows;
}

export type Weighed = TenantRow & { id: number; weightBefore: number };

/** Undefined where there is none of that name. */
export async function setWeight(db: Queryable, name: string, weight: number): Promise<Weighed | undefined> {
  const { rows } = await db.query<Weighed>(
    `with old as (select id, weight from carillon.tenants where name = $1 for no key update)
     update carillon.tenants t set weight = $2 from old where t.id = old.id
     returning t.id, t.name, t.weight, t.created_at as "createdAt", old.weight as "weightBefore"`,
    [name, weight],
  );
  return rows[0];
}
