// Tenants' own accounts with providers, as they are sealed.

import type { Queryable } from "#store/connection/database.ts";

export type SealedCredentials = { tenant: number; provider: string; sealed: string; updatedAt: Date };

const COLUMNS = `tenant, provider, sealed, updated_at as "updatedAt"`;

export async function putCredentials(db: Queryable, tenant: number, provider: string, sealed: string): Promise<void> {
  await db.query(
    `insert into carillon.credentials (tenant, provider, sealed) values ($1, $2, $3)
     on conflict (tenant, provider) do update set sealed = $3, updated_at = carillon.now()`,
    [tenant, provider, sealed],
  );
}

export async function deleteCredentials(db: Queryable, tenant: number, provider: string): Promise<boolean> {
  const { rowCount } = await db.query("delete from carillon.credentials where tenant = $1 and provider = $2", [
    tenant,
    provider,
  ]);
  return (rowCount ?? 0) > 0;
}

export async function listCredentials(db: Queryable): Promise<SealedCredentials[]> {
  const { rows } = await db.query<SealedCredentials>(
    `select ${COLUMNS} from carillon.credentials order by tenant, provider`,
  );
  return rows;
}

/** Puts a new seal in the place of an old one, unless the credentials were changed meanwhile. */
export async function resealCredentials(db: Queryable, old: SealedCredentials, sealed: string): Promise<void> {
  await db.query("update carillon.credentials set sealed = $4 where tenant = $1 and provider = $2 and sealed = $3", [
    old.tenant,
    old.provider,
    old.sealed,
    sealed,
  ]);
}

/** Something else after every change. */
export async function credentialsVersion(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ version: string }>({
    name: "carillon-credentials-version",
    text: "select count(*) || ' ' || coalesce(max(updated_at)::text, '') as version from carillon.credentials",
  });
  return rows[0]?.version ?? "";
}
