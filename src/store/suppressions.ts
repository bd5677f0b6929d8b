// Addresses to which nothing more is sent.

import type { Queryable } from "#store/connection/database.ts";

export type Suppression = {
  address: string;
  why: "bounce" | "complaint" | "manual";
  reason: string | null;
  at: Date;
};

const COLUMNS = "address, why, reason, at";

/** Case does not tell addresses apart. Lowered here and never in SQL, where it depends on the database's collation. */
export const lowered = (address: string): string => address.toLowerCase();

export async function hasSuppressions(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>("select exists (select from carillon.suppressions) as has");
  return rows[0]?.has ?? false;
}

export async function hasSuppressionsOf(db: Queryable, tenant: number): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    "select exists (select from carillon.suppressions where tenant = $1) as has",
    [tenant],
  );
  return rows[0]?.has ?? false;
}

/** Keeps those of these addresses that are suppressed under their pseudonyms: they go on being protected, and are no longer named. */
export async function veilSuppressions(tx: Queryable, tenant: number, addresses: readonly string[]): Promise<void> {
  await tx.query(
    `with named as (
       delete from carillon.suppressions where tenant = $1 and address = any ($2) returning address, why, at
     )
     insert into carillon.suppressions (tenant, address, why, at)
     select $1, carillon.pseudonym($1, address), why, at from named on conflict do nothing`,
    [tenant, addresses.map(lowered)],
  );
}

/** Whether the tenant has any under a pseudonym: an index knows. */
const HAS_VEILED = `exists (select from carillon.suppressions v where v.tenant = t.tenant and v.address ~ '^~[0-9a-f]{32}$')`;

/** Of many (tenant, address), those that are suppressed, as `tenant address` in lower case. One by one, by the key: joined, they would be paired all with all. */
export async function findSuppressed(
  db: Queryable,
  wanted: readonly { tenant: number; address: string }[],
): Promise<Map<string, Suppression["why"]>> {
  const { rows } = await db.query<{ tenant: number; address: string; why: Suppression["why"] }>(
    `with wanted as materialized (
       select tenant, address from unnest($1::int[], $2::text[]) as w(tenant, address)
     ), veiling as materialized (
       select t.tenant from (select distinct tenant from wanted) t where ${HAS_VEILED}
     )
     select w.tenant, w.address, s.why from wanted w cross join lateral (
       select x.why from carillon.suppressions x where x.tenant = w.tenant and x.address = w.address
       union all
       select x.why from carillon.suppressions x where w.tenant in (select v.tenant from veiling v) and x.tenant = w.tenant
         and x.address = carillon.pseudonym(w.tenant, w.address)
       limit 1
     ) s`,
    [wanted.map(({ tenant }) => tenant), wanted.map(({ address }) => lowered(address))],
  );
  return new Map(rows.map(({ tenant, address, why }) => [suppressionKey(tenant, address), why]));
}

export const suppressionKey = (tenant: number, address: string): string => `${tenant} ${lowered(address)}`;

export async function putSuppression(
  db: Queryable,
  tenant: number,
  address: string,
  reason: string | null,
): Promise<Suppression & { isNew: boolean }> {
  const { rows } = await db.query<Suppression & { isNew: boolean }>(
    `insert into carillon.suppressions as s (tenant, address, why, reason) values ($1, $2, 'manual', $3)
     on conflict (tenant, address) do update set reason = coalesce(s.reason, $3) returning ${COLUMNS}, xmax = 0 as "isNew"`,
    [tenant, lowered(address), reason],
  );
  return rows[0] as Suppression & { isNew: boolean };
}

export async function deleteSuppression(db: Queryable, tenant: number, address: string): Promise<boolean> {
  const { rowCount } = await db.query(
    "delete from carillon.suppressions where tenant = $1 and address in ($2, carillon.pseudonym($1, $2))",
    [tenant, lowered(address)],
  );
  return (rowCount ?? 0) > 0;
}

export async function listSuppressions(
  db: Queryable,
  tenant: number,
  afterAddress: string,
  limit: number,
): Promise<Suppression[]> {
  const { rows } = await db.query<Suppression>(
    `select ${COLUMNS} from carillon.suppressions where tenant = $1 and address > $2 order by address limit $3`,
    [tenant, afterAddress, limit],
  );
  return rows;
}
