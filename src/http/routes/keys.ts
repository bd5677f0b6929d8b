// /v1/keys: who may ask. The default tenant's administrators run the deployment: they may make keys
// for any tenant and see all of them. Other administrators see and make their own tenant's only.

import { Type } from "typebox";
import type { KeyActor } from "#domain/actor.ts";
import { newKey, SCOPES } from "#domain/api-key.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import type { Authenticate } from "#http/core/authenticate.ts";
import { type Route, route } from "#http/core/route.ts";
import type { Queryable } from "#store/connection/database.ts";
import { insertKey, listKeys, revokeKey, type StoredKey } from "#store/keys.ts";
import { ensureTenant } from "#store/tenants.ts";

const tag = "Keys";
const Name = Type.String({ minLength: 1, maxLength: 100 });
const Tenant = Type.String({
  pattern: "^[a-z0-9][a-z0-9_-]{0,62}$",
  "x-expects": "a name of lower-case letters, digits, - and _",
});

const KeyBody = Type.Object({
  id: Type.String(),
  tenant: Tenant,
  name: Name,
  scopes: Type.Array(oneOf(SCOPES)),
  createdAt: Instant,
  expiresAt: Type.Optional(Instant),
  revokedAt: Type.Optional(Instant),
  lastUsedAt: Type.Optional(Instant),
});

const visibleTo = ({ tenant, tenantName }: KeyActor) => (tenantName === "default" ? undefined : tenant);

export type KeyOptions = {
  db: Queryable;
  auth: Authenticate;
  /** CARILLON_API_KEY is set: there is a way in that is not stored. */
  hasFixedKey: boolean;
  now: () => Date;
};

export function keyRoutes({ db, auth, hasFixedKey, now }: KeyOptions): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/keys",
    summary: "List API keys",
    tag,
    scope: "admin",
    answers: {
      200: { description: "All keys, without their secrets", schema: Type.Object({ data: Type.Array(KeyBody) }) },
    },
    async handle({ actor }) {
      await auth.flushUses();
      return { status: 200, body: { data: (await listKeys(db, visibleTo(actor))).map(bodyOfKey) } };
    },
  });

  const create = route({
    method: "POST",
    path: "/v1/keys",
    summary: "Make an API key",
    detail: "The key is shown in this answer and never again: only its hash is kept.",
    tag,
    scope: "admin",
    body: strict({
      name: Name,
      scopes: Type.Array(oneOf(SCOPES), { minItems: 1, maxItems: SCOPES.length }),
      tenant: Type.Optional(Tenant),
      expiresAt: Type.Optional(Instant),
    }),
    answers: { 201: { description: "The key", schema: Type.Interface([KeyBody], { key: Type.String() }) } },
    async handle({ body, actor }) {
      const { name, scopes, tenant = actor.tenantName, expiresAt } = body;
      if (tenant !== actor.tenantName && actor.tenantName !== "default") {
        throw new Problem("FORBIDDEN", "only the default tenant's administrators may make keys for another tenant");
      }
      if (expiresAt !== undefined && !(new Date(expiresAt) > now())) {
        throw invalid([{ path: "/expiresAt", message: "must be in the future" }]);
      }
      const { id, key, hash } = newKey();
      const owner = tenant === actor.tenantName ? actor.tenant : await ensureTenant(db, tenant);
      const unique = [...new Set(scopes)];
      const createdAt = await insertKey(db, {
        id,
        tenant: owner,
        name,
        hash,
        scopes: unique,
        expiresAt: expiresAt ?? null,
      });
      const until = expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() };
      const answer = { id, key, tenant, name, scopes: unique, createdAt: createdAt.toISOString(), ...until };
      return { status: 201, body: answer };
    },
  });

  const revoke = route({
    method: "DELETE",
    path: "/v1/keys/:id",
    summary: "Revoke an API key",
    tag,
    scope: "admin",
    params: strict({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
    detail:
      "The last admin key of one's own tenant stays: make another first. The default tenant's may go where there is a fixed key " +
      "(`CARILLON_API_KEY`).",
    answers: {
      204: { description: "It no longer works; on other replicas within five seconds" },
      409: { description: "It is the last admin key" },
    },
    async handle({ params: { id }, actor }) {
      const { tenant, tenantName } = actor;
      const guarded = hasFixedKey && tenantName === "default" ? undefined : tenant;
      const revocation = await revokeKey(db, { id, tenant: visibleTo(actor), guarded });
      auth.forget(id);
      switch (revocation) {
        case "unknown":
          throw new Problem("NOT_FOUND", `there is no key ${id}`);
        case "last":
          throw new Problem("LAST_ADMIN_KEY", "make another admin key first");
        case "revoked":
          return { status: 204 };
      }
    },
  });

  return [list, create, revoke];
}

function bodyOfKey({ id, tenantName, name, scopes, createdAt, expiresAt, revokedAt, lastUsedAt }: StoredKey) {
  return {
    id,
    tenant: tenantName,
    name,
    scopes,
    createdAt: createdAt.toISOString(),
    ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
    ...(revokedAt && { revokedAt: revokedAt.toISOString() }),
    ...(lastUsedAt && { lastUsedAt: lastUsedAt.toISOString() }),
  };
}
