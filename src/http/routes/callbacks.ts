// What became of callbacks: GET /v1/endpoints/:id/deliveries, and /v1/callback-dead-letters.

import { Type } from "typebox";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { STATUSES } from "#domain/status.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { type Route, route } from "#http/core/route.ts";
import { EndpointId, Id, pageBody, RequeuedBody, strictOneOf } from "#http/core/schemas.ts";
import { type DeadCallback, type DeadLetterFilter, listDeadCallbacks } from "#record/dead-letters.ts";
import { type Delivery, listDeliveries } from "#record/deliveries.ts";
import { countRequeued, MAX_REQUEUE, type RequeueWorld, requeue, type Which } from "#steps/manage/requeue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findEndpoint } from "#store/endpoints.ts";

const tag = "Endpoints";
/** Looked at for a page with a rare filter. */
const MAX_SCANNED = 2_000;

const CallbackFields = {
  id: Id,
  webhookId: Type.String(),
  endpointId: EndpointId,
  type: Type.String(),
};
const AnswerBody = Type.Object({ status: Type.Integer(), body: Type.String() });
const DeliveryBody = Type.Object({
  ...CallbackFields,
  status: oneOf(STATUSES),
  createdAt: Instant,
  request: Type.Object({
    url: Type.Optional(Type.String()),
    headers: Type.Record(Type.String(), Type.String()),
    body: Type.String(),
  }),
  tries: Type.Array(
    Type.Object({
      number: Type.Integer(),
      startedAt: Type.Optional(Instant),
      endedAt: Instant,
      outcome: Type.Optional(Type.String()),
      error: Type.Optional(Type.String()),
      latencyMs: Type.Optional(Type.Number()),
      answer: Type.Optional(AnswerBody),
    }),
  ),
});
const DeadCallbackBody = Type.Object({
  ...CallbackFields,
  createdAt: Instant,
  failedAt: Instant,
  attempts: Type.Integer(),
  outcome: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  data: Type.Record(Type.String(), Type.Unknown()),
});
const Filter = {
  endpoint: Type.Optional(EndpointId),
  type: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  since: Type.Optional(Instant),
  until: Type.Optional(Instant),
};

export type CallbackRouteOptions = Omit<RequeueWorld, "pool"> & { large: RequeueWorld["pool"] };

export const callbackRoutes = (options: CallbackRouteOptions): Route[] => [
  deliveries(options),
  deadLetters(options),
  requeueSome(options),
];

const deliveries = ({ large }: { large: Queryable }): Route =>
  route({
    method: "GET",
    path: "/v1/endpoints/:id/deliveries",
    summary: "What was sent to an endpoint, and what its receiver answered",
    detail:
      "The newest first. `request` is what is posted each time, with `webhook-timestamp` and `webhook-signature` of that try; `tries` has the " +
      "last twenty, each with the beginning of the answer. A page may be short: go on while there is a `nextCursor`.",
    tag,
    scope: "read",
    turn: "large",
    params: strict({ id: EndpointId }),
    query: strict({
      status: Type.Optional(oneOf(STATUSES)),
      since: Type.Optional(Instant),
      until: Type.Optional(Instant),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: { 200: { description: "One page", schema: pageBody(DeliveryBody) } },
    async handle({ params: { id }, query: { limit = 20, cursor, ...filter }, actor }) {
      const endpoint = await findEndpoint(large, actor.tenant, id);
      if (!endpoint) throw new Problem("NOT_FOUND", `there is no endpoint ${id}`);
      const place = { beforeId: beforeIdOf(cursor), limit, maxScanned: MAX_SCANNED };
      const page = await listDeliveries(large, actor.tenant, { ...filter, endpoint: id }, place);
      const data = page.deliveries.map((delivery) => bodyOfDelivery(delivery, endpoint.url));
      return { status: 200, body: { data, nextCursor: nextCursorOf(page.nextId) } };
    },
  });

const deadLetters = ({ large }: { large: Queryable }): Route =>
  route({
    method: "GET",
    path: "/v1/callback-dead-letters",
    summary: "Callbacks that failed for good, with their final error",
    detail:
      "The newest first, also of endpoints that were deleted. A page may be short: go on while there is a `nextCursor`.",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      ...Filter,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: { 200: { description: "One page", schema: pageBody(DeadCallbackBody) } },
    async handle({ query: { limit = 50, cursor, ...given }, actor }) {
      const place = { beforeId: beforeIdOf(cursor), limit, maxScanned: MAX_SCANNED };
      const { letters, nextId } = await listDeadCallbacks(large, actor.tenant, filterOf(given), place);
      return { status: 200, body: { data: letters.map(bodyOfLetter), nextCursor: nextCursorOf(nextId) } };
    },
  });

const requeueSome = ({ large, ...world }: CallbackRouteOptions): Route =>
  route({
    method: "POST",
    path: "/v1/callback-dead-letters/requeue",
    summary: "Send callbacks again that failed for good, by ids or by filter",
    detail:
      "With the `webhook-id` that they had. At most `limit` go at once, the newest first: go on with `nextCursor` as the `cursor` until it is " +
      "null. With `dryRun` nothing is sent: `matched` says how many would be.",
    tag,
    scope: "admin",
    turn: "large",
    body: strictOneOf(["ids", "filter"], {
      ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 1000 })),
      filter: Type.Optional(strict(Filter)),
      dryRun: Type.Optional(Type.Boolean()),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_REQUEUE, default: 1000 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: { 200: { description: "What was done", schema: RequeuedBody } },
    async handle({ body: { ids, filter = {}, dryRun = false, limit = 1000, cursor }, actor }) {
      if (ids && cursor !== undefined) throw invalid([{ path: "/cursor", message: "goes with a filter" }]);
      const kind = "callback-retry" as const;
      const which: Which = ids
        ? { kind, ids }
        : { kind, filter: filterOf(filter), beforeId: beforeIdOf(cursor), limit };
      const { nextId, ...done } = dryRun
        ? await countRequeued(large, actor, which)
        : await requeue({ ...world, pool: large }, actor, which);
      return { status: 200, body: { ...done, nextCursor: nextCursorOf(nextId), dryRun } };
    },
  });

const beforeIdOf = (cursor: string | undefined) => (cursor === undefined ? undefined : idOfCursor(cursor));
const nextCursorOf = (id: string | undefined) => (id === undefined ? null : cursorOf(id));

/** In the record a callback's user is its endpoint. */
const filterOf = ({
  endpoint,
  ...rest
}: { endpoint?: string } & Omit<DeadLetterFilter, "userId">): DeadLetterFilter => ({
  ...rest,
  ...(endpoint !== undefined && { userId: endpoint }),
});

function bodyOfDelivery({ id, status, acceptedAt, callback, tries }: Delivery, own: string | null) {
  const { webhookId, endpoint, type, timestamp, data, url = own } = callback;
  return {
    id,
    webhookId,
    endpointId: endpoint,
    type,
    status,
    createdAt: acceptedAt.toISOString(),
    request: {
      ...(url !== null && { url }),
      headers: { "content-type": "application/json", "webhook-id": webhookId },
      body: JSON.stringify({ type, timestamp, data }),
    },
    tries: tries.map(({ number, startedAt, endedAt, outcome, error, latencyMs, answer }) => ({
      number,
      ...(startedAt !== null && { startedAt: new Date(startedAt).toISOString() }),
      endedAt: new Date(endedAt).toISOString(),
      ...(outcome !== null && { outcome }),
      ...(error !== null && { error }),
      ...(latencyMs !== null && { latencyMs }),
      ...(answer !== null && { answer }),
    })),
  };
}

function bodyOfLetter({ id, acceptedAt, failedAt, attempts, outcome, error, callback }: DeadCallback) {
  const { webhookId, endpoint, type, data } = callback;
  return {
    id,
    webhookId,
    endpointId: endpoint,
    type,
    createdAt: acceptedAt.toISOString(),
    failedAt: failedAt.toISOString(),
    attempts,
    ...(outcome !== null && { outcome }),
    ...(error !== null && { error }),
    data,
  };
}
