// /v1/dead-letters, and retry of a single notification.

import { Type } from "typebox";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, strictOneOf } from "#http/core/schemas.ts";
import { type DeadLetter, type DeadLetterFilter, listDeadLetters, retryEnded } from "#record/dead-letters.ts";
import { findRecord } from "#record/notifications.ts";
import { countFiltered, countIds, requeueFiltered, requeueIds } from "#steps/manage/requeue.ts";
import type { Queryable } from "#store/connection/database.ts";

const tag = "Dead letters";
const Filter = {
  channel: Type.Optional(oneOf(CHANNELS)),
  priority: Type.Optional(oneOf(PRIORITIES)),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  since: Type.Optional(Instant),
  until: Type.Optional(Instant),
};
const NextCursor = Type.Union([Type.String(), Type.Null()]);
const MAX_REQUEUE = 10_000;
/** Dead letters looked at for a page with a rare filter. */
const MAX_SCANNED = 2_000;

const DeadLetterBody = Type.Object({
  notificationId: Id,
  channel: oneOf(CHANNELS),
  priority: oneOf(PRIORITIES),
  enqueuedAt: Instant,
  failedAt: Instant,
  attempts: Type.Integer(),
  provider: Type.Optional(Type.String()),
  outcome: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
});

type DeadLetterOptions = { db: Queryable; large: Queryable; wake: () => void };

export function deadLetterRoutes({ db, large, wake }: DeadLetterOptions): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/dead-letters",
    summary: "Notifications that failed for good, with their final error",
    detail: "A page with a rare filter may be short: go on while there is a `nextCursor`.",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      ...Filter,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: {
      200: {
        description: "One page, the newest notifications first",
        schema: Type.Object({ data: Type.Array(DeadLetterBody), nextCursor: NextCursor }),
      },
    },
    async handle({ query, actor }) {
      const { limit = 50, cursor, ...given } = query;
      const place = { beforeId: beforeIdOf(cursor), limit, maxScanned: MAX_SCANNED };
      const { letters, nextId } = await listDeadLetters(large, actor.tenant, filterOf(given), place);
      return { status: 200, body: { data: letters.map(bodyOfLetter), nextCursor: nextCursorOf(nextId) } };
    },
  });

  const requeue = route({
    method: "POST",
    path: "/v1/dead-letters/requeue",
    summary: "Send dead letters again, by ids or by filter",
    detail:
      "At most `limit` go at once, the newest first: go on with `nextCursor` as the `cursor` until it is null. `remaining` counts what is " +
      "still to go, looking no further than 10,000 dead letters ahead. With `dryRun` nothing is sent: `matched` says how many of those " +
      "10,000 would be, and `nextCursor` where to go on counting.",
    tag,
    scope: "send",
    turn: "large",
    body: strictOneOf(["ids", "filter"], {
      ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 1000 })),
      filter: Type.Optional(strict(Filter)),
      dryRun: Type.Optional(Type.Boolean()),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_REQUEUE, default: 1000 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: {
      200: {
        description: "What was done",
        schema: Type.Object({
          matched: Type.Integer(),
          requeued: Type.Integer(),
          remaining: Type.Integer(),
          nextCursor: NextCursor,
          dryRun: Type.Boolean(),
        }),
      },
    },
    async handle({ body, actor }) {
      const { ids, filter, dryRun = false, limit = 1000, cursor } = body;
      if (ids && cursor !== undefined) throw invalid([{ path: "/cursor", message: "goes with a filter" }]);
      const { tenant } = actor;
      const wanted = filterOf(filter ?? {});
      const beforeId = beforeIdOf(cursor);
      const { nextId, ...done } = ids
        ? await (dryRun ? countIds : requeueIds)(large, tenant, ids)
        : await (dryRun ? countFiltered : requeueFiltered)(large, tenant, wanted, { beforeId, limit });
      if (done.requeued > 0) wake();
      return { status: 200, body: { ...done, nextCursor: nextCursorOf(nextId), dryRun } };
    },
  });

  const retry = route({
    method: "POST",
    path: "/v1/notifications/:id/retry",
    summary: "Send a notification again that failed, expired, was cancelled or is ambiguous",
    detail: "It goes back to its lane with a fresh budget of attempts.",
    tag: "Notifications",
    scope: "send",
    params: strict({ id: Id }),
    answers: {
      200: { description: "It is queued again", schema: Type.Object({ notificationId: Id, status: Type.String() }) },
      409: { description: "It has not ended, or has been sent" },
    },
    async handle({ params: { id }, actor }) {
      const record = await findRecord(db, actor.tenant, id);
      if (!record) throw new Problem("NOT_FOUND", `there is no notification ${id}`);
      const [back] = await retryEnded(db, actor.tenant, [id]);
      if (back === undefined) {
        const { status = record.status } = (await findRecord(db, actor.tenant, id)) ?? {};
        throw new Problem("NOT_RETRYABLE", `the notification is ${status}`);
      }
      wake();
      return { status: 200, body: { notificationId: id, status: "queued" } };
    },
  });

  return [retry, list, requeue];
}

const beforeIdOf = (cursor: string | undefined) => (cursor === undefined ? undefined : idOfCursor(cursor));
const nextCursorOf = (id: string | undefined) => (id === undefined ? null : cursorOf(id));

function filterOf({
  priority,
  ...rest
}: { priority?: keyof typeof rankOf } & Omit<DeadLetterFilter, "rank">): DeadLetterFilter {
  return { ...rest, ...(priority && { rank: rankOf[priority] }) };
}

const bodyOfLetter = ({
  id,
  acceptedAt,
  failedAt,
  channel,
  priority,
  attempts,
  provider,
  outcome,
  error,
  request,
}: DeadLetter) => ({
  notificationId: id,
  channel,
  priority,
  enqueuedAt: acceptedAt.toISOString(),
  failedAt: failedAt.toISOString(),
  attempts,
  ...(provider !== null && { provider }),
  ...(outcome !== null && { outcome }),
  ...(error !== null && { error }),
  recipient: request.recipient ?? {},
  metadata: request.metadata ?? {},
});
