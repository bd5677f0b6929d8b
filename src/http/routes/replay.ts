// POST /v1/endpoints/:id/replay: what happened, told again.

import { Type } from "typebox";
import { Events } from "#domain/endpoint-request.ts";
import { readPosition, writtenPosition } from "#domain/fact.ts";
import { Instant, strict } from "#domain/notification.ts";
import { invalid } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { EndpointId, Id } from "#http/core/schemas.ts";
import { countReplayed, type ReplayWorld, replay } from "#steps/manage/replay.ts";

const MOST_AT_ONCE = 1_000;

const ReplayBody = strict({
  since: Instant,
  until: Type.Optional(Instant),
  types: Type.Optional(Events),
  notification: Type.Optional(Id),
  dryRun: Type.Optional(Type.Boolean()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_AT_ONCE, default: MOST_AT_ONCE })),
  cursor: Type.Optional(Type.String({ maxLength: 64 })),
});
const ReplayedBody = Type.Object({
  matched: Type.Integer(),
  replayed: Type.Integer(),
  nextCursor: Type.Union([Type.String(), Type.Null()]),
  dryRun: Type.Boolean(),
});

export const replayRoutes = (world: ReplayWorld): Route[] => [
  route({
    method: "POST",
    path: "/v1/endpoints/:id/replay",
    summary: "Tell an endpoint again what happened since an instant",
    detail:
      "Whether it was told then or not, each with the `webhook-id` of then. `until`, `types` and `notification` narrow it. A call looks at `limit` facts " +
      "at most, and may find nothing where there is more: go on with `nextCursor` as the `cursor` until it is null. With `dryRun` nothing is sent: `matched` says how many " +
      "would be. 410 `RESET`: what happened then is no longer kept; the answer's `next` is a `cursor` for the oldest that is.",
    tag: "Endpoints",
    scope: "admin",
    turn: "large",
    params: strict({ id: EndpointId }),
    body: ReplayBody,
    answers: { 200: { description: "What was done", schema: ReplayedBody } },
    async handle({ params: { id }, body, actor }) {
      const { since, until, types, notification, dryRun = false, limit = MOST_AT_ONCE, cursor } = body;
      const after = cursor === undefined ? undefined : readPosition(cursor);
      if (cursor !== undefined && !after)
        throw invalid([{ path: "/cursor", message: "must be a nextCursor of before" }]);
      const asked = {
        since: new Date(since),
        ...(until !== undefined && { until: new Date(until) }),
        ...(types && { types }),
        ...(notification !== undefined && { notificationId: notification }),
        ...(after && { after }),
        limit,
      };
      const { next, ...done } = orThrow(await (dryRun ? countReplayed : replay)(world, actor, id, asked));
      return { status: 200, body: { ...done, nextCursor: next ? writtenPosition(next) : null, dryRun } };
    },
  }),
];
