// API keys: stored as a hash, found by their public id.

import type { Queryable } from "./database.ts";

export type StoredKey = {
  id: string;
  tenant: number;
  tenantName: string;
  name: string;
  hash: Buffer;
  scopes: string[];
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
};

const COLUMNS = `k.id, k.tenant, t.name as "tenantName", k.name, k.hash, k.scopes, k.created_at as "createdAt",
  k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt"`;

export async function findKey(db: Queryable, id: string): Promise<StoredKey | undefined> {
  const { rows } = await db.query<StoredKey>({
    name: "carillon-key",
    text: `select ${COLUMNS} from carillon.keys k join carillon.tenants t on t.id = k.tenant where k.id = $1`,
    values: [id],
  });
  return rows[0];
}

/** Of one tenant, or of all when `tenant` is undefined; the newest first. */
export async function listKeys(db: Queryable, tenant: number | undefined): Promise<StoredKey[]> {
  const { rows } = await db.query<StoredKey>(
    `select ${COLUMNS} from carillon.keys k join carillon.tenants t on t.id = k.tenant
     where $1::int is null or k.tenant = $1 order by k.created_at desc, k.id`,
    [tenant ?? null],
  );
  return rows;
}

export type NewKey = Pick<StoredKey, "id" | "tenant" | "name" | "hash" | "scopes"> & { expiresAt: string | null };

export async function insertKey(db: Queryable, key: NewKey): Promise<Date> {
  const { rows } = await db.query<{ created_at: Date }>(
    `insert into carillon.keys (id, tenant, name, hash, scopes, expires_at) values ($1, $2, $3, $4, $5, $6)
     returning created_at`,
    [key.id, key.tenant, key.name, key.hash, key.scopes, key.expiresAt],
  );
  return rows[0]?.created_at as Date;
}

/** True for the one caller, of any number of replicas that start together, whose key became the first. */
export async function insertFirstKey(db: Queryable, key: Pick<NewKey, "id" | "name" | "hash">): Promise<boolean> {
  const { rows } = await db.query<{ made: boolean }>("select carillon.make_first_key($1, $2, $3) as made", [
    key.id,
    key.name,
    key.hash,
  ]);
  return rows[0]?.made ?? false;
}

/** True when there was such a key that was not yet revoked. */
export async function revokeKey(db: Queryable, tenant: number | undefined, id: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `update carillon.keys set revoked_at = now() where id = $2 and ($1::int is null or tenant = $1) and revoked_at is null`,
    [tenant ?? null, id],
  );
  return rowCount === 1;
}

export async function recordUses(db: Queryable, uses: ReadonlyMap<string, Date>): Promise<void> {
  await db.query(
    `update carillon.keys k set last_used_at = greatest(k.last_used_at, u.at)
     from unnest($1::text[], $2::timestamptz[]) as u(id, at) where k.id = u.id`,
    [[...uses.keys()], [...uses.values()]],
  );
}
