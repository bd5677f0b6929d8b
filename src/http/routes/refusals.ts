// GET /v1/refusals: messages that were no requests, and facts that a sink will not have.

import { Type } from "typebox";
import { allows } from "#domain/api-key.ts";
import { CONNECTOR_KINDS } from "#domain/connector.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { type Route, route } from "#http/core/route.ts";
import { ConnectorName, pageBody } from "#http/core/schemas.ts";
import { isOperator } from "#steps/manage/keys.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listRefusals, type RefusalRow } from "#store/connectors.ts";

const RefusalBody = Type.Object({
  id: Type.String(),
  kind: oneOf(CONNECTOR_KINDS),
  name: Type.String(),
  tenant: Type.Optional(Type.String()),
  place: Type.String(),
  code: Type.String(),
  errors: Type.Array(Type.Object({ path: Type.String(), message: Type.String() })),
  at: Instant,
});

export const refusalRoutes = ({ large }: { large: Queryable }): Route[] => [
  route({
    method: "GET",
    path: "/v1/refusals",
    summary: "What sources and sinks passed over, the latest first",
    detail:
      "A message that is no request, with every fault, and a fact that a sink will not have, with what it said. `place` says where it came from: it is not kept here itself. A tenant " +
      "sees its own; the default tenant's administrators see all, also those of which nobody knows whose they are. They are kept for as long as the feed.",
    tag: "Refusals",
    scope: "read",
    turn: "large",
    query: strict({
      kind: Type.Optional(oneOf(CONNECTOR_KINDS)),
      name: Type.Optional(ConnectorName),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Type.String({ pattern: "^[0-9]{1,15}$", "x-expects": "a nextCursor of an earlier page" })),
    }),
    answers: { 200: { description: "One page, the latest first", schema: pageBody(RefusalBody) } },
    async handle({ query: { limit = 50, cursor, kind, name }, actor }) {
      const seesAll = isOperator(actor) && allows(actor.scopes, "admin");
      const rows = await listRefusals(large, {
        ...(!seesAll && { tenant: actor.tenant }),
        ...(kind && { kind }),
        ...(name !== undefined && { name }),
        ...(cursor !== undefined && { beforeId: Number(cursor) }),
        limit,
      });
      const last = rows.length === limit ? rows.at(-1) : undefined;
      return { status: 200, body: { data: rows.map(bodyOf), nextCursor: last ? String(last.id) : null } };
    },
  }),
];

const bodyOf = ({ id, kind, name, tenant, place, code, faults, at }: RefusalRow) => ({
  id: String(id),
  kind,
  name,
  ...(tenant !== null && { tenant }),
  place,
  code,
  errors: faults,
  at: at.toISOString(),
});
