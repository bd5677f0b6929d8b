// POST /v1/notifications, one or many at a time.

import { Type } from "typebox";
import type { Acceptance, Decision } from "#domain/acceptance.ts";
import { IDEMPOTENCY_KEY, NotificationRequest, oneOf, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { STATUSES } from "#domain/status.ts";
import { contextOf, withContext } from "#domain/trace-context.ts";
import { bodyOf } from "#http/core/problem.ts";
import { type Answer, type Route, route } from "#http/core/route.ts";
import { AcceptanceBody, Id, ProblemSchema } from "#http/core/schemas.ts";
import { type Acceptances, accept } from "#steps/walk/accept.ts";

const MAX_BATCH = 1000;
const BATCH_BYTES = 16 * 1024 * 1024;
const tag = "Notifications";

/** For the document alone: what is something else is left unread. */
const TraceHeaders = { traceparent: Type.Optional(Type.String()), tracestate: Type.Optional(Type.String()) };

const BatchBody = Type.Object({
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      notificationId: Type.Optional(Id),
      status: Type.Optional(oneOf(STATUSES)),
      replayed: Type.Optional(Type.Boolean()),
      error: Type.Optional(ProblemSchema),
    }),
  ),
  summary: Type.Object({
    total: Type.Integer(),
    succeeded: Type.Integer(),
    failed: Type.Integer(),
    pending: Type.Integer(),
  }),
});

export const sendRoutes = ({ acceptances }: { acceptances: Acceptances }): Route[] => [
  send(acceptances),
  sendBatch(acceptances),
];

const send = (acceptances: Acceptances): Route =>
  route({
    method: "POST",
    path: "/v1/notifications",
    summary: "Send a notification",
    detail:
      "Answered after it is stored safely. Send it again with the same idempotency key if no answer comes. A provider that is away is asked " +
      "again as the channel's retries have it, over a day and more where it is not our own; a `retryPolicy` stands in place of that as a " +
      "whole, and what it leaves out is 5 attempts, a factor of 2 and 300000 ms at most. What may have been sent is sent again twice, unless " +
      "`onAmbiguous` says otherwise.",
    tag,
    scope: "send",
    // Acceptance has connections and a line of its own.
    turn: "none",
    headers: Type.Object({ "Idempotency-Key": Type.Optional(IDEMPOTENCY_KEY), ...TraceHeaders }),
    body: NotificationRequest,
    isBodyCheckedLater: true,
    answers: {
      202: { description: "Accepted, and kept whatever happens next", schema: AcceptanceBody },
      200: {
        description: "The same idempotency key and body as before: the notification of then",
        schema: AcceptanceBody,
      },
    },
    async handle({ body, header, actor }) {
      const request = withContext(withKey(body, header("idempotency-key")), contextIn(header));
      const [outcome] = await accept(actor.tenant, [request], acceptances);
      if (!outcome || outcome instanceof Problem) throw outcome;
      const answer: Answer = { status: outcome.isReplay ? 200 : 202, body: bodyOfAcceptance(outcome) };
      if (outcome.isReplay) answer.headers = { "idempotent-replayed": "true" };
      return answer;
    },
  });

const sendBatch = (acceptances: Acceptances): Route =>
  route({
    method: "POST",
    path: "/v1/notifications/batch",
    summary: `Send up to ${MAX_BATCH} notifications`,
    detail: "Each stands or falls by itself. `pending` counts those that were accepted but are not yet due.",
    tag,
    scope: "send",
    turn: "none",
    bodyLimit: BATCH_BYTES,
    headers: Type.Object(TraceHeaders),
    // What is no notification fails alone, so that anything may stand in the list.
    body: strict({
      notifications: Type.Array(Type.Union([NotificationRequest, Type.Unknown({ description: "Refused by itself" })]), {
        minItems: 1,
        maxItems: MAX_BATCH,
      }),
    }),
    isBodyCheckedLater: true,
    answers: { 200: { description: "What became of each", schema: BatchBody } },
    async handle({ body, header, actor }) {
      const context = contextIn(header);
      const requests = notificationsOf(body);
      const traced = context ? requests.map((request) => withContext(request, context)) : requests;
      const outcomes = await accept(actor.tenant, traced, acceptances);
      return { status: 200, body: bodyOfBatch(outcomes) };
    },
  });

/** Of the request by which it came; what is no trace context is nobody's fault. */
const contextIn = (header: (name: string) => string | undefined) =>
  contextOf(header("traceparent"), header("tracestate"));

/** The key may come in the header; if it comes in both places it must be the same. */
function withKey(body: unknown, key: string | undefined): unknown {
  if (key === undefined || body === null || typeof body !== "object" || Array.isArray(body)) return body;
  if ("idempotencyKey" in body && body.idempotencyKey !== key) {
    throw invalid([{ path: "/idempotencyKey", message: "must be the same as the header Idempotency-Key" }]);
  }
  return { ...body, idempotencyKey: key };
}

/** Only the frame of a batch is checked here: a bad notification must not fail the others. */
function notificationsOf(body: unknown): unknown[] {
  const given = body !== null && typeof body === "object" && !Array.isArray(body) ? body : {};
  const faults = Object.keys(given)
    .filter((name) => name !== "notifications")
    .map((name) => ({ path: `/${name}`, message: "is not a known field" }));
  const notifications = "notifications" in given ? given.notifications : undefined;
  if (!Array.isArray(notifications) || notifications.length < 1 || notifications.length > MAX_BATCH) {
    faults.push({ path: "/notifications", message: `must be a list of 1 to ${MAX_BATCH} notifications` });
  }
  if (faults.length > 0) throw invalid(faults);
  return notifications as unknown[];
}

function bodyOfAcceptance({ isReplay: _, ...body }: Acceptance) {
  return body;
}

function bodyOfBatch(outcomes: readonly Decision[]) {
  const results = outcomes.map((outcome, index) =>
    outcome instanceof Problem
      ? { index, error: bodyOf(outcome) }
      : {
          index,
          notificationId: outcome.notificationId,
          status: outcome.status,
          ...(outcome.isReplay && { replayed: true }),
        },
  );
  const failed = outcomes.filter((outcome) => outcome instanceof Problem).length;
  const pending = outcomes.filter((outcome) => !(outcome instanceof Problem) && outcome.status === "pending").length;
  const total = outcomes.length;
  return { results, summary: { total, succeeded: total - failed, failed, pending } };
}
