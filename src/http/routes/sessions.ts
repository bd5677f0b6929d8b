// /v1/sessions: how people sign in at the dashboard, and out.

import { Type } from "typebox";
import { SCOPES } from "#domain/api-key.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { DEFAULT_SESSION_SECONDS, MAX_SESSION_SECONDS } from "#domain/session.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { TenantName } from "#http/core/schemas.ts";
import { cookieOfSession, isSecure } from "#http/core/session-cookie.ts";
import { beginSession, endSession, type SessionWorld } from "#steps/manage/sessions.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findSession } from "#store/sessions.ts";

const tag = "Sessions";

const Who = Type.Object({
  key: Type.Object({ id: Type.String(), name: Type.String() }),
  tenant: TenantName,
  scopes: Type.Array(oneOf(SCOPES)),
  session: Type.Optional(Type.Object({ id: Type.String(), expiresAt: Instant })),
});

export type SessionOptions = SessionWorld & { db: Queryable; publicUrl: string | undefined };

export const sessionRoutes = (options: SessionOptions): Route[] => [begin(options), show(options), end(options)];

const begin = ({ publicUrl, ...world }: SessionOptions): Route =>
  route({
    method: "POST",
    path: "/v1/sessions",
    summary: "Sign in: put a session that stands for the API key of this request into a cookie that no script can read",
    detail:
      "The session may do what its key may, and ends with it. Changes by cookie are taken from this service's own pages only. " +
      "The key goes into the header Authorization; of one key's sessions the 50 newest are kept.",
    tag,
    scope: "any",
    body: strict({
      expiresInSeconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: MAX_SESSION_SECONDS, default: DEFAULT_SESSION_SECONDS }),
      ),
    }),
    isBodyOptional: true,
    answers: { 201: { description: "The cookie is set", schema: Who } },
    async handle({ body: { expiresInSeconds = DEFAULT_SESSION_SECONDS }, actor, header }) {
      const { id, token, expiresAt } = orThrow(await beginSession(world, actor, expiresInSeconds));
      const secure = isSecure({ "x-forwarded-proto": header("x-forwarded-proto") }, publicUrl);
      return {
        status: 201,
        headers: { "set-cookie": cookieOfSession(token, expiresInSeconds, secure) },
        body: { ...whoIs(actor), session: { id, expiresAt: expiresAt.toISOString() } },
      };
    },
  });

const show = ({ db }: SessionOptions): Route =>
  route({
    method: "GET",
    path: "/v1/sessions",
    summary: "Who is asking: the key, its tenant and scopes, and the session if it came by one",
    tag,
    scope: "any",
    answers: { 200: { description: "Who", schema: Who } },
    async handle({ actor }) {
      const session = actor.session === undefined ? undefined : await findSession(db, actor.session);
      const until = session && { session: { id: session.id, expiresAt: session.expiresAt.toISOString() } };
      return { status: 200, body: { ...whoIs(actor), ...until } };
    },
  });

const end = ({ publicUrl, ...world }: SessionOptions): Route =>
  route({
    method: "DELETE",
    path: "/v1/sessions",
    summary: "Sign out: end the session of this request and take its cookie away",
    tag,
    scope: "any",
    answers: { 204: { description: "It no longer works; on other replicas within five seconds" } },
    async handle({ actor, header }) {
      await endSession(world, actor);
      const secure = isSecure({ "x-forwarded-proto": header("x-forwarded-proto") }, publicUrl);
      return { status: 204, headers: { "set-cookie": cookieOfSession("", 0, secure) } };
    },
  });

const whoIs = (actor: { keyId: string; keyName: string; tenantName: string; scopes: readonly string[] }) => ({
  key: { id: actor.keyId, name: actor.keyName },
  tenant: actor.tenantName,
  scopes: actor.scopes,
});
