// /v1/keys: who may ask.

import { Type } from "typebox";
import { SCOPES } from "#domain/api-key.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import type { Authenticate } from "#http/core/authenticate.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { TenantName } from "#http/core/schemas.ts";
import { makeKey, type RevokeWorld, revokeKey, visibleTo } from "#steps/manage/keys.ts";
import { listKeys, type StoredKey } from "#store/keys.ts";

const tag = "Keys";
const Name = Type.String({ minLength: 1, maxLength: 100 });

const KeyBody = Type.Object({
  id: Type.String(),
  tenant: TenantName,
  name: Name,
  scopes: Type.Array(oneOf(SCOPES)),
  createdAt: Instant,
  expiresAt: Type.Optional(Instant),
  revokedAt: Type.Optional(Instant),
  lastUsedAt: Type.Optional(Instant),
});

export type KeyOptions = Pick<RevokeWorld, "pool" | "hasFixedKey"> & { auth: Authenticate; now: () => Date };

export const keyRoutes = (options: KeyOptions): Route[] => [list(options), create(options), revoke(options)];

const list = ({ pool, auth }: KeyOptions): Route =>
  route({
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
      return { status: 200, body: { data: (await listKeys(pool, visibleTo(actor))).map(bodyOfKey) } };
    },
  });

const create = ({ pool, now }: KeyOptions): Route =>
  route({
    method: "POST",
    path: "/v1/keys",
    summary: "Make an API key",
    detail: "The key is shown in this answer and never again: only its hash is kept.",
    tag,
    scope: "admin",
    body: strict({
      name: Name,
      scopes: Type.Array(oneOf(SCOPES), { minItems: 1, maxItems: SCOPES.length }),
      tenant: Type.Optional(TenantName),
      expiresAt: Type.Optional(Instant),
    }),
    answers: { 201: { description: "The key", schema: Type.Interface([KeyBody], { key: Type.String() }) } },
    async handle({ body, actor }) {
      const { createdAt, expiresAt, ...made } = orThrow(await makeKey({ pool, now }, actor, body));
      const until = expiresAt && { expiresAt: expiresAt.toISOString() };
      return { status: 201, body: { ...made, createdAt: createdAt.toISOString(), ...until } };
    },
  });

const revoke = ({ pool, auth, hasFixedKey }: KeyOptions): Route =>
  route({
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
      switch (await revokeKey({ pool, hasFixedKey, forget: auth.forget }, actor, id)) {
        case "unknown":
          throw new Problem("NOT_FOUND", `there is no key ${id}`);
        case "last":
          throw new Problem("LAST_ADMIN_KEY", "make another admin key first");
        case "revoked":
          return { status: 204 };
      }
    },
  });

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
