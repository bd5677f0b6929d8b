// GET /v1/notifications: one with everything that happened to it, or a list.

import { Type } from "typebox";
import { Event } from "#domain/event.ts";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { Problem } from "#domain/problems.ts";
import { STATUSES } from "#domain/status.ts";
import { traceIdOf } from "#domain/trace-context.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { type Route, route } from "#http/core/route.ts";
import { AttemptBody, Id, pageBody, RecordBody } from "#http/core/schemas.ts";
import { findHistory } from "#record/events.ts";
import { type Filters, findRecord, listRecords, type Record } from "#record/notifications.ts";
import type { Queryable } from "#store/connection/database.ts";

/** How many notifications one page of a filtered list looks at. */
const MAX_SCANNED = 20_000;

const tag = "Notifications";

const ListQuery = strict({
  status: Type.Optional(oneOf(STATUSES)),
  channel: Type.Optional(oneOf(CHANNELS)),
  priority: Type.Optional(oneOf(PRIORITIES)),
  userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  id: Type.Optional(Id),
  recipient: Type.Optional(
    Type.String({ minLength: 1, maxLength: 2048, description: "An address, a number, a Slack channel or a URL" }),
  ),
  templateId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  error: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: "Part of an attempt's error, in whatever case" }),
  ),
  since: Type.Optional(Instant),
  until: Type.Optional(Instant),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
  cursor: Type.Optional(Cursor),
});

export type NotificationOptions = { db: Queryable; large: Queryable };

export const notificationRoutes = (options: NotificationOptions): Route[] => [list(options), read(options)];

const list = ({ large }: NotificationOptions): Route =>
  route({
    method: "GET",
    path: "/v1/notifications",
    summary: "List notifications, the newest first",
    detail:
      "Besides the named filters, `metadata.<key>=<value>` compares a field of the metadata. Pages are stable while " +
      "notifications arrive. A page may be short, of large requests or with a rare filter: go on while there is a `nextCursor`. " +
      "A page looks at 20,000 notifications at most; `looked` says at how many, and `searchedUntil` back to when, if there is more.",
    tag,
    scope: "read",
    turn: "large",
    query: ListQuery,
    queryPrefix: "metadata.",
    answers: {
      200: {
        description: "One page",
        schema: Type.Interface([pageBody(RecordBody)], {
          looked: Type.Integer(),
          searchedUntil: Type.Optional(Instant),
        }),
      },
    },
    async handle({ query, actor }) {
      const { records, nextId, looked, until } = await listRecords(large, actor.tenant, filtersOf(query), {
        beforeId: query.cursor === undefined ? undefined : idOfCursor(query.cursor),
        limit: query.limit ?? 50,
        maxScanned: MAX_SCANNED,
      });
      const data = records.map(bodyOfRecord);
      const searched = { looked, ...(until && { searchedUntil: until.toISOString() }) };
      return { status: 200, body: { data, nextCursor: nextId ? cursorOf(nextId) : null, ...searched } };
    },
  });

const read = ({ db }: NotificationOptions): Route =>
  route({
    method: "GET",
    path: "/v1/notifications/:id",
    summary: "Read a notification with everything that happened to it",
    tag,
    scope: "read",
    params: strict({ id: Id }),
    answers: {
      200: {
        description: "The record",
        schema: Type.Interface([RecordBody], { attempts: Type.Array(AttemptBody), events: Type.Array(Event) }),
      },
    },
    async handle({ params, actor }) {
      const record = await findRecord(db, actor.tenant, params.id);
      if (!record) throw new Problem("NOT_FOUND", `there is no notification ${params.id}`);
      const { attempts, events } = await findHistory(db, actor.tenant, record.id);
      return { status: 200, body: { ...bodyOfRecord(record), attempts, events } };
    },
  });

function bodyOfRecord({ id, status, channel, priority, acceptedAt, dueAt, expiresAt, request }: Record) {
  const {
    recipient = {},
    content,
    channel: _c,
    priority: _p,
    scheduledFor: _s,
    expiresAt: _e,
    trace: _t,
    ...rest
  } = request;
  const traceId = traceIdOf(request);
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
    ...(traceId !== undefined && { traceId }),
  };
}

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
