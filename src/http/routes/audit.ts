// GET /v1/audit: who did what to what.

import { Type } from "typebox";
import { ACTIONS } from "#domain/audit.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { type Route, route } from "#http/core/route.ts";
import { pageBody, TenantName } from "#http/core/schemas.ts";
import { type AuditLine, listAudit } from "#store/audit-lines.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Lines looked at for a page with a rare filter. */
const MAX_SCANNED = 5_000;

const Fields = Type.Record(Type.String(), Type.Unknown());
const LineBody = Type.Object({
  at: Instant,
  actor: Type.Object({
    kind: oneOf(["key", "user", "provider", "process", "command-line"]),
    id: Type.String(),
    name: Type.Optional(Type.String()),
    session: Type.Optional(Type.String()),
  }),
  action: oneOf(ACTIONS),
  object: Type.String(),
  tenant: TenantName,
  change: Type.Object({ before: Type.Optional(Fields), after: Type.Optional(Fields) }),
  address: Type.Optional(Type.String()),
  requestId: Type.Optional(Type.String()),
});

export const auditRoutes = ({ large }: { large: Queryable }): Route[] => [
  route({
    method: "GET",
    path: "/v1/audit",
    summary: "Who did what to what, when and from where",
    detail:
      "Every change by a key, a process or the command line, with the fields that changed. A tenant sees what was done to its own things and what its own " +
      "keys did; the default tenant also what is everybody's. `actor` is a key's id or name; `object` is `kind:name`, or a kind alone. People and addresses are " +
      "kept under pseudonyms: ask for `user:ID` or `suppression:ADDRESS` and what is kept of them is found. " +
      "A page may be short with a rare filter: go on while there is a `nextCursor`.",
    tag: "Audit",
    scope: "admin",
    turn: "large",
    query: strict({
      since: Type.Optional(Instant),
      until: Type.Optional(Instant),
      actor: Type.Optional(Type.String({ minLength: 1, maxLength: 400 })),
      action: Type.Optional(oneOf(ACTIONS)),
      object: Type.Optional(Type.String({ minLength: 1, maxLength: 800 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Type.String({ pattern: "^[0-9]{1,18}$", "x-expects": "a nextCursor of an earlier page" })),
    }),
    answers: { 200: { description: "One page, the newest first", schema: pageBody(LineBody) } },
    async handle({ query: { limit = 50, cursor, ...filter }, actor }) {
      const place = { beforeSeq: cursor, limit, maxScanned: MAX_SCANNED };
      const { lines, nextSeq } = await listAudit(large, actor.tenant, filter, place);
      return { status: 200, body: { data: lines.map(bodyOf), nextCursor: nextSeq ?? null } };
    },
  }),
];

const bodyOf = ({
  at,
  actorKind,
  actor,
  actorName,
  session,
  before,
  after,
  address,
  requestId,
  ...line
}: AuditLine) => ({
  at: at.toISOString(),
  actor: {
    kind: actorKind,
    id: actor,
    ...(actorName !== null && { name: actorName }),
    ...(session !== null && { session }),
  },
  action: line.action,
  object: line.object,
  tenant: line.tenant,
  change: { ...(before !== null && { before }), ...(after !== null && { after }) },
  ...(address !== null && { address }),
  ...(requestId !== null && { requestId }),
});
