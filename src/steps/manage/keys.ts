// API keys: made and revoked. The default tenant's administrators run the deployment: they may make keys for any tenant, and see
// and revoke all of them. Other administrators have to do with their own tenant's only.

import type pg from "pg";
import type { CommandLineActor, KeyActor, ProcessActor } from "#domain/actor.ts";
import { newKey, type Scope } from "#domain/api-key.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { findKey, insertFirstKey, insertKey, type Revocation, revokeKey as revokeStored } from "#store/keys.ts";
import { ensureTenant } from "#store/tenants.ts";

export const DEFAULT_TENANT = "default";

export type KeyRequest = { name: string; scopes: readonly Scope[]; tenant?: string; expiresAt?: string };

/** `key` is its only copy: nothing but its hash is kept. */
export type MadeKey = {
  id: string;
  key: string;
  tenant: string;
  name: string;
  scopes: Scope[];
  createdAt: Date;
  expiresAt: Date | null;
};

type Maker = KeyActor | CommandLineActor;

const tenantOf = (actor: Maker): string => (actor.kind === "key" ? actor.tenantName : DEFAULT_TENANT);

/** Whether somebody of the tenant that runs the deployment. */
export const isOperator = ({ tenantName }: KeyActor): boolean => tenantName === DEFAULT_TENANT;

export const mustOperate = (actor: KeyActor): true | Problem =>
  isOperator(actor) || new Problem("FORBIDDEN", "that is for the default tenant's administrators");

/** The tenant whose keys somebody sees; undefined for all of them. */
export const visibleTo = (actor: KeyActor): number | undefined => (isOperator(actor) ? undefined : actor.tenant);

export async function makeKey(
  { pool, now }: { pool: pg.Pool; now: () => Date },
  actor: Maker,
  { name, scopes, tenant = tenantOf(actor), expiresAt }: KeyRequest,
): Promise<MadeKey | Problem> {
  if (tenant !== tenantOf(actor) && tenantOf(actor) !== DEFAULT_TENANT) {
    return new Problem("FORBIDDEN", "only the default tenant's administrators may make keys for another tenant");
  }
  if (expiresAt !== undefined && !(new Date(expiresAt) > now())) {
    return invalid([{ path: "/expiresAt", message: "must be in the future" }]);
  }
  const { id, key, hash } = newKey();
  const unique = [...new Set(scopes)];
  const createdAt = await inTransaction(pool, async (tx) => {
    const owner = await ownerOf(tx, actor, tenant);
    const after = { name, scopes: unique, expiresAt };
    await writeAudit(tx, actor, { action: "key.create", object: { kind: "key", name: id }, tenant: owner, after });
    return insertKey(tx, { id, tenant: owner, name, hash, scopes: unique, expiresAt: expiresAt ?? null });
  });
  const until = expiresAt === undefined ? null : new Date(expiresAt);
  return { id, key, tenant, name, scopes: unique, createdAt, expiresAt: until };
}

/** The tenant that a key is for. One that nobody has named before is made. */
async function ownerOf(tx: Queryable, actor: Maker, tenant: string): Promise<number> {
  if (actor.kind === "key" && tenant === actor.tenantName) return actor.tenant;
  const { id, isNew } = await ensureTenant(tx, tenant);
  if (isNew)
    await writeAudit(tx, actor, { action: "tenant.create", object: { kind: "tenant", name: tenant }, tenant: id });
  return id;
}

/** The admin key with which a deployment begins; undefined where there was one before, or another replica was first. */
export async function makeFirstKey(pool: pg.Pool, actor: ProcessActor): Promise<string | undefined> {
  const { id, key, hash } = newKey();
  const name = "first";
  const isFirst = await inTransaction(pool, async (tx) => {
    if (!(await insertFirstKey(tx, { id, name, hash }))) return false;
    const after = { name, scopes: ["admin"] };
    await writeAudit(tx, actor, { action: "key.create", object: { kind: "key", name: id }, after });
    return true;
  });
  return isFirst ? key : undefined;
}

export type RevokeWorld = {
  pool: pg.Pool;
  /** CARILLON_API_KEY is set: there is a way in that is not stored. */
  hasFixedKey: boolean;
  /** Whoever remembers keys need not wait to hear of it. */
  forget: (keyId: string) => void;
};

/**
 * The last admin key of one's own tenant stays, unless there is another way in. Somebody at the command line has one: they make the next key
 * where they revoke the last.
 */
export async function revokeKey(
  { pool, hasFixedKey, forget }: RevokeWorld,
  actor: Maker,
  id: string,
): Promise<Revocation> {
  const isCommand = actor.kind === "command-line";
  const guarded = isCommand || (hasFixedKey && isOperator(actor)) ? undefined : actor.tenant;
  const tenant = isCommand ? undefined : visibleTo(actor);
  const revocation = await inTransaction(pool, async (tx) => {
    const outcome = await revokeStored(tx, { id, tenant, guarded });
    const key = outcome === "revoked" ? await findKey(tx, id) : undefined;
    if (key) {
      const { tenant, name, scopes } = key;
      const object = { kind: "key", name: id };
      await writeAudit(tx, actor, { action: "key.revoke", object, tenant, before: { name, scopes } });
    }
    return outcome;
  });
  forget(id);
  return revocation;
}
