// What a sender hands over: one message, one recipient, one channel.
//
// These schemas are the contract. The HTTP doors validate with them, the OpenAPI document shows
// them, the TypeScript types are read off them, and a migration carries them into the database
// for carillon.send(). Patterns keep to what JavaScript and PostgreSQL read alike.

import { type Static, type TProperties, Type } from "typebox";
import { POLICIES } from "./endpoint.ts";
import { FACT_TYPES } from "./fact.ts";
import { PRIORITIES } from "./priority.ts";
import { MOST_TRACESTATE, TRACEPARENT, TRACESTATE, type TraceContext } from "./trace-context.ts";

export const CHANNELS = ["email", "push", "sms", "slack", "webhook", "inbox", "console", "file"] as const;
export type Channel = (typeof CHANNELS)[number];

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const matching = (pattern: string, expects: string, maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern, "x-expects": expects });
/** One of a few words. */
export const oneOf = <const T extends string[]>(words: readonly [...T]) => Type.Enum(words);
export const strict = <T extends TProperties>(properties: T) =>
  Type.Object(properties, { additionalProperties: false });

// A line break here would end a mail header or a log line and begin another of the sender's choice.
const line = (maxLength: number) => matching("^[^\\u0001-\\u001f\\u007f]+$", "a single line of text", maxLength);
/**
 * What may stand in a path. A part of a path that is `.` or `..` makes another path of it to most clients, however it is
 * encoded: nobody may be called that.
 */
export const nameLine = (maxLength: number) =>
  matching(
    "^([.]{0,2}[^.\\u0001-\\u001f\\u007f]|[.]{3})[^\\u0001-\\u001f\\u007f]*$",
    "a single line of text, and not . or .. alone",
    maxLength,
  );
export const Url = matching("^https?://[!-~]+$", "an http or https URL", 2048);
const date = "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
const time = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])";
export const INSTANT = `^${date}T${time}$`;
export const Instant = Type.String({
  format: "date-time",
  pattern: INSTANT,
  maxLength: 40,
  "x-expects": "an instant like 2027-01-01T09:00:00.000Z",
});
const domain = "[A-Za-z0-9\\u0080-\\uffff-]+([.][A-Za-z0-9\\u0080-\\uffff-]+)+";
const email = matching(`^[^\\u0001-\\u0020\\u007f@<>(),;:"]+@${domain}$`, "an e-mail address", 254);
const anything = Type.Record(Type.String(), Type.Unknown(), { maxProperties: 100 });

export const Recipient = strict({
  userId: Type.Optional(nameLine(256)),
  email: Type.Optional(email),
  phone: Type.Optional(matching("^[+][1-9][0-9]{6,14}$", "a phone number like +33612345678", 16)),
  deviceTokens: Type.Optional(Type.Array(line(4096), { minItems: 1, maxItems: 500 })),
  slackChannel: Type.Optional(matching("^[#@]?[A-Za-z0-9._-]+$", "a Slack channel like C024BE91L", 80)),
  webhookUrl: Type.Optional(Url),
  locale: Type.Optional(matching("^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", "a language tag like fr-CA", 35)),
  timezone: Type.Optional(matching("^[A-Za-z][A-Za-z0-9_+/-]*$", "a time zone like Europe/Paris", 64)),
  metadata: Type.Optional(anything),
});

const Attachment = strict({
  filename: matching("^[^\\u0001-\\u001f\\u007f/\\\\]+$", "a file name without a path", 255),
  contentType: matching("^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$", "a media type like application/pdf", 127),
  content: matching("^[A-Za-z0-9+/]+={0,2}$", "base64", 262_144),
});

// SES takes 50 recipients a mail: the one it is for, and these two lists.
const copies = Type.Optional(Type.Array(email, { minItems: 1, maxItems: 24 }));
// Not Type.Record: it writes patternProperties, which the walk that words the faults does not know.
const headers = Type.Unsafe<{ [name: string]: string }>(
  Type.Object({}, { additionalProperties: line(900), maxProperties: 20 }),
);
export const HEADER_NAME = "^[!-9;-~]{1,76}$";
/** Lower case. Carillon and the provider write these; two of one kind, or a forged one, would spoil a mail. */
export const RESERVED_HEADERS = [
  ...["from", "sender", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version"],
  ...["received", "return-path", "content-type", "content-transfer-encoding", "content-disposition"],
  ...["dkim-signature", "list-unsubscribe", "list-unsubscribe-post"],
];

export const Content = strict({
  subject: Type.Optional(line(998)),
  from: Type.Optional(email),
  fromName: Type.Optional(line(200)),
  replyTo: Type.Optional(email),
  cc: copies,
  bcc: copies,
  headers: Type.Optional(headers),
  textBody: Type.Optional(text(262_144)),
  htmlBody: Type.Optional(text(262_144)),
  title: Type.Optional(text(1024)),
  body: Type.Optional(text(262_144)),
  imageUrl: Type.Optional(Url),
  clickAction: Type.Optional(line(2048)),
  icon: Type.Optional(line(2048)),
  badge: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  sound: Type.Optional(line(256)),
  data: Type.Optional(anything),
  templateId: Type.Optional(line(128)),
  templateVersion: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })),
  variables: Type.Optional(anything),
  attachments: Type.Optional(Type.Array(Attachment, { minItems: 1, maxItems: 10 })),
});

const RetryPolicy = strict({
  maxAttempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  backoffMultiplier: Type.Optional(Type.Number({ minimum: 1, maximum: 10 })),
  maxBackoffMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 604_800_000 })),
});

export const IDEMPOTENCY_KEY = matching("^[ -~]+$", "printable ASCII", 256);

export const NotificationRequest = strict({
  channel: oneOf(CHANNELS),
  recipient: Type.Optional(Recipient),
  content: Content,
  priority: Type.Optional(oneOf(PRIORITIES)),
  region: Type.Optional(matching("^[a-z0-9][a-z0-9_-]*$", "a region like eu-west", 64)),
  scheduledFor: Type.Optional(Instant),
  expiresAt: Type.Optional(Instant),
  idempotencyKey: Type.Optional(IDEMPOTENCY_KEY),
  retryPolicy: Type.Optional(RetryPolicy),
  onAmbiguous: Type.Optional(oneOf(["resend", "hold", "reconcile"])),
  metadata: Type.Optional(anything),
  traceparent: Type.Optional(matching(TRACEPARENT, "a traceparent as W3C Trace Context has it, of version 00", 55)),
  tracestate: Type.Optional(matching(TRACESTATE, "printable ASCII", MOST_TRACESTATE)),
  callbackUrl: Type.Optional(Url),
  callbackPolicy: Type.Optional(oneOf(POLICIES)),
  callbackEvents: Type.Optional(Type.Array(oneOf(FACT_TYPES), { minItems: 1, maxItems: FACT_TYPES.length })),
});
export type NotificationRequest = Static<typeof NotificationRequest>;
/** As it is stored. */
export type KeptRequest = NotificationRequest & Pick<TraceContext, "trace">;

/** What each channel needs of recipient and content: at least one field of every list. */
export const NEEDS: Readonly<Record<Channel, { recipient: string[][]; content: string[][] }>> = {
  email: {
    recipient: [["email"]],
    content: [
      ["subject", "templateId"],
      ["textBody", "htmlBody", "templateId"],
    ],
  },
  push: { recipient: [["deviceTokens", "userId"]], content: [["title", "body", "templateId", "data"]] },
  sms: { recipient: [["phone"]], content: [["body", "templateId"]] },
  slack: { recipient: [["slackChannel", "webhookUrl"]], content: [["body", "templateId"]] },
  webhook: { recipient: [["webhookUrl"]], content: [["body", "data", "title", "templateId"]] },
  inbox: { recipient: [["userId"]], content: [["title", "body", "templateId"]] },
  console: { recipient: [], content: [] },
  file: { recipient: [], content: [] },
};
