// /v1/endpoints: where callbacks go. How they fared there: callbacks.ts.

import { Type } from "typebox";
import { ENDPOINT_STATES, FIFO_KEYS, POLICIES } from "#domain/endpoint.ts";
import { EndpointChange, EndpointRequest } from "#domain/endpoint-request.ts";
import { Instant, oneOf, strict, Url } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { EndpointId, Reason } from "#http/core/schemas.ts";
import { createTurns } from "#http/core/turns.ts";
import {
  changeEndpoint,
  type EndpointWorld,
  MOST_ENDPOINTS,
  makeEndpoint,
  pauseEndpoint,
  removeEndpoint,
  resumeEndpoint,
  rotateEndpoint,
  type SecretEndpoint,
} from "#steps/manage/endpoints.ts";
import { type TestWorld, testEndpoint } from "#steps/manage/test-endpoint.ts";
import { type EndpointRow, findEndpoint, findEndpointsOf } from "#store/endpoints.ts";

const tag = "Endpoints";
const params = strict({ id: EndpointId });
const MOST_KEEP_SECONDS = 604_800;
/** A receiver may take its time to answer, so a test waits in a line of its own. */
const TESTS = { abreast: 20, perTenant: 2, line: 10, patienceMs: 3_000 };

const { events, rate, description } = EndpointRequest.properties;
const EndpointBody = Type.Object({
  id: EndpointId,
  url: Type.Optional(Url),
  events,
  policy: oneOf(POLICIES),
  fifo: Type.Optional(oneOf(FIFO_KEYS)),
  rate,
  description,
  state: oneOf(ENDPOINT_STATES),
  reason: Type.Optional(Type.String()),
  publicKey: Type.String(),
  previousSecretUntil: Type.Optional(Instant),
  createdAt: Instant,
  changedAt: Instant,
  lastSuccessAt: Type.Optional(Instant),
  failingSince: Type.Optional(Instant),
});
const SecretBody = Type.Interface([EndpointBody], { secret: Type.String() });
const TestedBody = Type.Object({
  webhookId: Type.String(),
  delivered: Type.Boolean(),
  latencyMs: Type.Integer(),
  status: Type.Optional(Type.Integer()),
  body: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
});

export type EndpointOptions = EndpointWorld & TestWorld;

export const endpointRoutes = (world: EndpointOptions): Route[] => [
  make(world),
  list(world),
  read(world),
  change(world),
  remove(world),
  pause(world),
  resume(world),
  rotate(world),
  test(world),
];

const make = (world: EndpointWorld): Route =>
  route({
    method: "POST",
    path: "/v1/endpoints",
    summary: "Have callbacks sent to a URL",
    detail:
      "From now on, what happens to the tenant's notifications is posted there: of the types in `events`, or all of them. `secret` signs " +
      "(`v1`) and is shown only this once; `publicKey` verifies what is signed with `v1a`. " +
      `A tenant has ${MOST_ENDPOINTS} at most.`,
    tag,
    scope: "admin",
    body: EndpointRequest,
    isBodyCheckedLater: true,
    answers: { 201: { description: "The endpoint, with its secret", schema: SecretBody } },
    handle: async ({ body, actor }) => ({
      status: 201,
      body: bodyOfSecret(orThrow(await makeEndpoint(world, actor, body))),
    }),
  });

const list = ({ pool }: EndpointOptions): Route =>
  route({
    method: "GET",
    path: "/v1/endpoints",
    summary: "Endpoints of the tenant, the oldest first",
    detail:
      "The built-in `requests` is among them once a request has named a `callbackUrl`, or somebody has changed it.",
    tag,
    scope: "read",
    answers: { 200: { description: "All of them", schema: Type.Object({ data: Type.Array(EndpointBody) }) } },
    handle: async ({ actor }) => ({
      status: 200,
      body: { data: (await findEndpointsOf(pool, [actor.tenant])).map(bodyOfEndpoint) },
    }),
  });

const read = ({ pool }: EndpointOptions): Route =>
  route({
    method: "GET",
    path: "/v1/endpoints/:id",
    summary: "Read an endpoint",
    tag,
    scope: "read",
    params,
    answers: { 200: { description: "The endpoint", schema: EndpointBody } },
    async handle({ params: { id }, actor }) {
      const found = await findEndpoint(pool, actor.tenant, id);
      if (!found) throw new Problem("NOT_FOUND", `there is no endpoint ${id}`);
      return { status: 200, body: bodyOfEndpoint(found) };
    },
  });

const change = (world: EndpointWorld): Route =>
  route({
    method: "PATCH",
    path: "/v1/endpoints/:id",
    summary: "Change an endpoint",
    detail:
      "What is not named stays; null takes back what was said. It holds for what is sent from now on, also for what waits. Of `requests`, URL and " +
      "events are what each request says itself; its policy is for requests that name none.",
    tag,
    scope: "admin",
    params,
    body: EndpointChange,
    isBodyCheckedLater: true,
    answers: { 200: { description: "The endpoint", schema: EndpointBody } },
    handle: async ({ params: { id }, body, actor }) => ({
      status: 200,
      body: bodyOfEndpoint(orThrow(await changeEndpoint(world, actor, id, body))),
    }),
  });

const remove = (world: EndpointWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/endpoints/:id",
    summary: "Delete an endpoint",
    detail: "What still waits for it ends as dead letters. `requests` cannot be deleted.",
    tag,
    scope: "admin",
    params,
    answers: { 204: { description: "Deleted" } },
    async handle({ params: { id }, actor }) {
      const problem = await removeEndpoint(world, actor, id);
      if (problem) throw problem;
      return { status: 204 };
    },
  });

const pause = (world: EndpointWorld): Route =>
  route({
    method: "POST",
    path: "/v1/endpoints/:id/pause",
    summary: "Pause an endpoint",
    detail: "Nothing more is sent there. What happens meanwhile waits, and spends no attempt.",
    tag,
    scope: "admin",
    params,
    body: strict({ reason: Reason }),
    answers: { 200: { description: "The endpoint", schema: EndpointBody } },
    handle: async ({ params: { id }, body: { reason }, actor }) => ({
      status: 200,
      body: bodyOfEndpoint(orThrow(await pauseEndpoint(world, actor, id, reason))),
    }),
  });

const resume = (world: EndpointWorld): Route =>
  route({
    method: "POST",
    path: "/v1/endpoints/:id/resume",
    summary: "Go on with an endpoint that is paused or was disabled",
    detail: "What happened while it was disabled is not sent by itself: replay it.",
    tag,
    scope: "admin",
    params,
    answers: { 200: { description: "The endpoint", schema: EndpointBody } },
    handle: async ({ params: { id }, actor }) => ({
      status: 200,
      body: bodyOfEndpoint(orThrow(await resumeEndpoint(world, actor, id))),
    }),
  });

const rotate = (world: EndpointWorld): Route =>
  route({
    method: "POST",
    path: "/v1/endpoints/:id/rotate",
    summary: "Sign with new secrets",
    detail:
      "The secret and key before sign beside the new ones for `keepSeconds`, a day unless it is said; those before them no longer.",
    tag,
    scope: "admin",
    params,
    body: strict({
      keepSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: MOST_KEEP_SECONDS, default: 86_400 })),
    }),
    isBodyOptional: true,
    answers: { 200: { description: "The endpoint, with its new secret", schema: SecretBody } },
    handle: async ({ params: { id }, body: { keepSeconds }, actor }) => ({
      status: 200,
      body: bodyOfSecret(orThrow(await rotateEndpoint(world, actor, id, keepSeconds))),
    }),
  });

function test(world: TestWorld): Route {
  const turns = createTurns(TESTS);
  return route({
    method: "POST",
    path: "/v1/endpoints/:id/test",
    summary: "Post an `endpoint.test` now, and hear what the receiver said",
    detail: "Once, also while the endpoint is paused or disabled. For `requests` with the `url` to post to.",
    tag,
    scope: "admin",
    turn: "none",
    params,
    body: strict({ url: Type.Optional(Url) }),
    isBodyOptional: true,
    answers: { 200: { description: "What the receiver said", schema: TestedBody } },
    async handle({ params: { id }, body: { url }, actor }) {
      const tested = await turns(actor.tenant, () => testEndpoint(world, actor, id, url));
      const { isDelivered, ...said } = orThrow(tested);
      return { status: 200, body: { ...said, delivered: isDelivered } };
    },
  });
}

const bodyOfSecret = ({ secret, ...endpoint }: SecretEndpoint) => ({ ...bodyOfEndpoint(endpoint), secret });

function bodyOfEndpoint(row: EndpointRow) {
  const { id, url, events, policy, fifo, rate, description, state, reason, publicKey, previousUntil } = row;
  const { createdAt, changedAt, lastSuccessAt, failingSince } = row;
  return {
    id,
    ...(url !== null && { url }),
    ...(events && { events }),
    policy,
    ...(fifo && { fifo }),
    ...(rate && { rate }),
    ...(description !== null && { description }),
    state,
    ...(reason !== null && { reason }),
    publicKey,
    ...(previousUntil && { previousSecretUntil: previousUntil.toISOString() }),
    createdAt: createdAt.toISOString(),
    changedAt: changedAt.toISOString(),
    ...(lastSuccessAt && { lastSuccessAt: lastSuccessAt.toISOString() }),
    ...(failingSince && { failingSince: failingSince.toISOString() }),
  };
}
