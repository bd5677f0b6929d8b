// The shapes that answers have in common.

import { type TProperties, type TSchema, Type } from "typebox";
import { ENDPOINT_ID } from "#domain/endpoint.ts";
import { ENGINES } from "#domain/handoff.ts";
import { CHANNELS, Content, Instant, NotificationRequest, nameLine, oneOf, Recipient } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { STATUSES } from "#domain/status.ts";

export const Id = Type.String({
  format: "uuid",
  pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
  "x-expects": "a notification's id, a UUID",
});

/** A name that the caller chose; not `.` or `..`, as for nameLine(). */
export const Key = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: "^([.]{0,2}[A-Za-z0-9_:@~-]|[.]{3})[A-Za-z0-9._:@~-]*$",
  "x-expects": "letters, digits and . _ : @ ~ -, and not . or .. alone",
});

export const UserId = nameLine(256);

export const ProviderName = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,62}$", "x-expects": "a provider's name" });

export const ConnectorName = Type.String({
  pattern: "^[a-z0-9][a-z0-9_-]{0,62}$",
  "x-expects": "the name of a source or a sink",
});

export const TenantName = Type.String({
  pattern: "^[a-z0-9][a-z0-9_-]{0,62}$",
  "x-expects": "a name of lower-case letters, digits, - and _",
});

export const EndpointId = Type.String({ pattern: ENDPOINT_ID, maxLength: 64, "x-expects": "an endpoint's id" });

/** Why somebody stops something. */
export const Reason = Type.String({ minLength: 1, maxLength: 500, pattern: "\\S", "x-expects": "some words" });

export const TimeZone = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^[A-Za-z][A-Za-z0-9_+/-]*$",
  "x-expects": "a time zone like Europe/Paris",
});

/** With exactly one of the fields of those names. */
export const strictOneOf = <T extends TProperties>(names: (keyof T & string)[], properties: T) =>
  Type.Object(properties, { additionalProperties: false, oneOf: names.map((name) => ({ required: [name] })) });

export const pageBody = <Item extends TSchema>(item: Item) =>
  Type.Object({ data: Type.Array(item), nextCursor: Type.Union([Type.String(), Type.Null()]) });

export const RequeuedBody = Type.Object({
  matched: Type.Integer(),
  requeued: Type.Integer(),
  remaining: Type.Integer(),
  nextCursor: Type.Union([Type.String(), Type.Null()]),
  dryRun: Type.Boolean(),
});

export const AcceptanceBody = Type.Object({
  notificationId: Id,
  status: oneOf(STATUSES),
  channel: oneOf(CHANNELS),
  priority: oneOf(PRIORITIES),
  enqueuedAt: Instant,
  scheduledFor: Type.Optional(Instant),
  estimatedDeliveryAt: Type.Optional(Instant),
});

export const RecordBody = Type.Object({
  notificationId: Id,
  status: oneOf(STATUSES),
  channel: oneOf(CHANNELS),
  priority: oneOf(PRIORITIES),
  enqueuedAt: Instant,
  scheduledFor: Type.Optional(Instant),
  expiresAt: Type.Optional(Instant),
  recipient: Recipient,
  content: Content,
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  forgotten: Type.Optional(Type.Boolean({ description: "Whose it was is no longer known, nor what it said" })),
  idempotencyKey: NotificationRequest.properties.idempotencyKey,
  retryPolicy: NotificationRequest.properties.retryPolicy,
  onAmbiguous: NotificationRequest.properties.onAmbiguous,
  traceparent: NotificationRequest.properties.traceparent,
  tracestate: NotificationRequest.properties.tracestate,
  traceId: Type.Optional(Type.String({ pattern: "^[0-9a-f]{32}$", "x-expects": "a trace's id" })),
});

export const AttemptBody = Type.Object({
  number: Type.Integer(),
  provider: Type.Optional(Type.String()),
  worker: Type.Optional(Type.String()),
  startedAt: Type.Optional(Instant),
  endedAt: Type.Optional(Instant),
  outcome: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  latencyMs: Type.Optional(Type.Number()),
  cost: Type.Optional(Type.Number()),
  exchange: Type.Optional(
    Type.Object(
      {
        request: Type.Optional(Type.Object({ type: Type.String(), body: Type.String() })),
        answer: Type.Optional(Type.Object({ status: Type.Integer(), body: Type.String() })),
      },
      {
        description: "What was handed to the provider and what it answered: the beginning of each, without credentials",
      },
    ),
  ),
  engine: Type.Optional(oneOf(ENGINES)),
});

export const ProblemSchema = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  code: Type.String(),
  detail: Type.String(),
  errors: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
  next: Type.Optional(Type.String()),
  requestId: Type.Optional(Type.String()),
});
