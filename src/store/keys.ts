// API keys: stored as a hash, found by their public id.

import type { Queryable } from "#store/connection/database.ts";

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

export type Revocation = "revoked" | "unknown" | "last";

/**
 * Revokes a key of one tenant, or of any when `tenant` is undefined; the last admin key of the tenant `guarded` stays.
 * All admin keys of the key's tenant are locked first, in one order: of two that revoke each other, the second sees what the
 * first has done. Keys that have expired let nobody in, and do not count.
 */
export async function revokeKey(
  db: Queryable,
  { id, tenant, guarded }: { id: string; tenant: number | undefined; guarded: number | undefined },
): Promise<Revocation> {
  const { rows } = await db.query<{ known: boolean; revoked: boolean }>(
    `with held as materialized (
       select id, tenant, 'admin' = any (scopes) and coalesce(expires_at > carillon.now(), true) as opens
       from carillon.keys
       where revoked_at is null and (id = $1 or 'admin' = any (scopes))
         and tenant = (select tenant from carillon.keys where id = $1 and ($2::int is null or tenant = $2))
       order by id for update
     ), left_over as (select count(*) as keys from held where opens and id <> $1
     ), revoked as (
       update carillon.keys k set revoked_at = carillon.now() from held h, left_over l
       where k.id = $1 and h.id = $1 and (not h.opens or l.keys > 0 or h.tenant is distinct from $3)
       returning k.id
     )
     select exists (select from held where id = $1) as known, exists (select from revoked) as revoked`,
    [id, tenant ?? null, guarded ?? null],
  );
  const { known, revoked } = rows[0] as { known: boolean; revoked: boolean };
  return revoked ? "revoked" : known ? "last" : "unknown";
}

export async function recordUses(db: Queryable, uses: ReadonlyMap<string, Date>): Promise<void> {
  await db.query(
    `update carillon.keys k set last_used_at = greatest(k.last_used_at, u.at)
     from unnest($1::text[], $2::timestamptz[]) as u(id, at) where k.id = u.id`,
    [[...uses.keys()], [...uses.values()]],
  );
}
