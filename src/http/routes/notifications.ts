// /v1/notifications: send, read, list, cancel.

import { Type } from "typebox";
import type { Acceptance } from "#domain/acceptance.ts";
import { CHANNELS, IDEMPOTENCY_KEY, Instant, NotificationRequest, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { STATUSES } from "#domain/status.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { bodyOf } from "#http/core/problem.ts";
import { type Answer, type Route, route } from "#http/core/route.ts";
import { AcceptanceBody, AttemptBody, EventBody, Id, ProblemSchema, RecordBody } from "#http/core/schemas.ts";
import { type Event, type Filters, findEvents, findRecord, listRecords, type Record } from "#record/notifications.ts";
import { cancel } from "#steps/manage/cancel.ts";
import type { Accept } from "#steps/walk/accept.ts";
import type { Queryable } from "#store/connection/database.ts";

const MAX_BATCH = 1000;
const BATCH_BYTES = 16 * 1024 * 1024;
/** How many notifications one page of a filtered list looks at. */
const MAX_SCANNED = 20_000;

const ById = strict({ id: Id });
const tag = "Notifications";

export function notificationRoutes({
  accept,
  db,
  large,
}: {
  accept: Accept;
  db: Queryable;
  large: Queryable;
}): Route[] {
  const send = route({
    method: "POST",
    path: "/v1/notifications",
    summary: "Send a notification",
    detail: "Answered after it is stored safely. Send it again with the same idempotency key if no answer comes.",
    tag,
    scope: "send",
    // Acceptance has connections and a line of its own.
    turn: "none",
    headers: Type.Object({ "Idempotency-Key": Type.Optional(IDEMPOTENCY_KEY) }),
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
      const [outcome] = await accept.accept(actor.tenant, [withKey(body, header("idempotency-key"))]);
      if (!outcome || outcome instanceof Problem) throw outcome;
      const answer: Answer = { status: outcome.isReplay ? 200 : 202, body: bodyOfAcceptance(outcome) };
      if (outcome.isReplay) answer.headers = { "idempotent-replayed": "true" };
      return answer;
    },
  });

  const sendBatch = route({
    method: "POST",
    path: "/v1/notifications/batch",
    summary: `Send up to ${MAX_BATCH} notifications`,
    detail: "Each stands or falls by itself. `pending` counts those that were accepted but are not yet due.",
    tag,
    scope: "send",
    turn: "none",
    bodyLimit: BATCH_BYTES,
    // What is no notification fails alone, so that anything may stand in the list.
    body: strict({
      notifications: Type.Array(Type.Union([NotificationRequest, Type.Unknown()]), {
        minItems: 1,
        maxItems: MAX_BATCH,
      }),
    }),
    isBodyCheckedLater: true,
    answers: { 200: { description: "What became of each", schema: BatchBody } },
    async handle({ body, actor }) {
      const outcomes = await accept.accept(actor.tenant, notificationsOf(body));
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
      const pending = outcomes.filter(
        (outcome) => !(outcome instanceof Problem) && outcome.status === "pending",
      ).length;
      const total = outcomes.length;
      return { status: 200, body: { results, summary: { total, succeeded: total - failed, failed, pending } } };
    },
  });

  const read = route({
    method: "GET",
    path: "/v1/notifications/:id",
    summary: "Read a notification with everything that happened to it",
    tag,
    scope: "read",
    params: ById,
    answers: {
      200: {
        description: "The record",
        schema: Type.Interface([RecordBody], { attempts: Type.Array(AttemptBody), events: Type.Array(EventBody) }),
      },
    },
    async handle({ params, actor }) {
      const record = await findRecord(db, actor.tenant, params.id);
      if (!record) throw noSuch(params.id);
      const events = await findEvents(db, record.id);
      return {
        status: 200,
        body: { ...bodyOfRecord(record), attempts: attemptsOf(events), events: timelineOf(record, events) },
      };
    },
  });

  const list = route({
    method: "GET",
    path: "/v1/notifications",
    summary: "List notifications, the newest first",
    detail:
      "Besides the named filters, `metadata.<key>=<value>` compares a field of the metadata. Pages are stable while " +
      "notifications arrive. A page with a rare filter may be short: go on while there is a `nextCursor`.",
    tag,
    scope: "read",
    turn: "large",
    query: ListQuery,
    queryPrefix: "metadata.",
    answers: {
      200: {
        description: "One page",
        schema: Type.Object({ data: Type.Array(RecordBody), nextCursor: Type.Union([Type.String(), Type.Null()]) }),
      },
    },
    async handle({ query, actor }) {
      const { records, nextId } = await listRecords(large, actor.tenant, filtersOf(query), {
        beforeId: query.cursor === undefined ? undefined : idOfCursor(query.cursor),
        limit: query.limit ?? 50,
        maxScanned: MAX_SCANNED,
      });
      return { status: 200, body: { data: records.map(bodyOfRecord), nextCursor: nextId ? cursorOf(nextId) : null } };
    },
  });

  const cancelOne = route({
    method: "POST",
    path: "/v1/notifications/:id/cancel",
    summary: "Cancel a notification that has not been taken up yet",
    tag,
    scope: "send",
    params: ById,
    answers: {
      200: {
        description: "It will not be sent",
        schema: Type.Object({ notificationId: Id, cancelled: Type.Boolean() }),
      },
      409: {
        description: "Too late; `reason` says why",
        schema: Type.Object({ notificationId: Id, cancelled: Type.Boolean(), reason: Type.String() }),
      },
    },
    async handle({ params, actor }) {
      const outcome = await cancel(db, actor.tenant, params.id);
      if (outcome === "unknown") throw noSuch(params.id);
      if (outcome === "cancelled") return { status: 200, body: { notificationId: params.id, cancelled: true } };
      const reason = `the notification is ${outcome.status}`;
      const problem = bodyOf(new Problem("NOT_CANCELLABLE", reason));
      return {
        status: 409,
        body: { ...problem, notificationId: params.id, cancelled: false, reason },
        headers: { "content-type": "application/problem+json; charset=utf-8" },
      };
    },
  });

  return [send, sendBatch, list, read, cancelOne];
}

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

const ListQuery = strict({
  status: Type.Optional(oneOf(STATUSES)),
  channel: Type.Optional(oneOf(CHANNELS)),
  priority: Type.Optional(oneOf(PRIORITIES)),
  userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  since: Type.Optional(Instant),
  until: Type.Optional(Instant),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
  cursor: Type.Optional(Cursor),
});

const noSuch = (id: string) => new Problem("NOT_FOUND", `there is no notification ${id}`);

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

function bodyOfRecord({ id, status, channel, priority, acceptedAt, dueAt, expiresAt, request }: Record) {
  const { recipient = {}, content, channel: _c, priority: _p, scheduledFor: _s, expiresAt: _e, ...rest } = request;
  return {
    notificationId: id,
    status,
    channel,
    priority,
    enqueuedAt: acceptedAt.toISOString(),
    ...(dueAt && { scheduledFor: dueAt.toISOString() }),
    ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
    recipient,
    content,
    ...rest,
  };
}

const attemptsOf = (events: Event[]) =>
  events
    .filter(({ type }) => type === "attempt")
    .map(({ attempt, provider, worker, startedAt, at, outcome, error, latencyMs, cost }) =>
      withoutNulls({
        number: attempt,
        provider,
        worker,
        startedAt: startedAt?.toISOString(),
        endedAt: at.toISOString(),
        outcome,
        error,
        latencyMs,
        cost,
      }),
    );

/** What was accepted is the first line; the rest are the events as they were recorded. */
function timelineOf({ acceptedAt, request: { scheduledFor } }: Record, events: Event[]) {
  const to = scheduledFor !== undefined && new Date(scheduledFor) > acceptedAt ? "pending" : "queued";
  const rest = events.map(({ type, at, from, to, attempt, provider, outcome, error, detail }) =>
    withoutNulls({ type, at: at.toISOString(), from, to, attempt, provider, outcome, error, detail }),
  );
  return [{ type: "accepted", at: acceptedAt.toISOString(), to }, ...rest];
}

const withoutNulls = (fields: { [name: string]: unknown }) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

function filtersOf(query: { [name: string]: unknown }): Filters {
  const { priority, limit: _l, cursor: _c, ...named } = query as { priority?: keyof typeof rankOf } & typeof query;
  const metadata: { [key: string]: string } = Object.create(null);
  const filters: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(named)) {
    if (name.startsWith("metadata.")) metadata[name.slice("metadata.".length)] = String(value);
    else filters[name] = value;
  }
  return { ...filters, ...(priority && { rank: rankOf[priority] }), metadata };
}
