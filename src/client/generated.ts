// The types of the client's methods and of what they take and answer. Long, for it is written by scripts/client-types.ts from the schemas that
// the service validates with; test/client/generated.test.ts fails while it says something else. To write it anew:
//
//   CARILLON_WRITE=1 node test/run.ts test/client/generated.test.ts

import type { RawBody } from "./bind.ts";
import type { CallOptions } from "./call.ts";
import type { InboxEvent } from "./events.ts";

/** One page of a list. Go on with `nextCursor` as the `cursor` until it is null. */
export type Page<Item> = { data: Item[]; nextCursor: string | null };

/** With these fields. */
type Has<T, Field extends keyof T> = T & { [name in Field]-?: NonNullable<T[name]> };
/** With one of these fields, at least. */
type Some<T, Field extends keyof T> = { [name in Field]-?: Has<T, name> }[Field];

export type Channel = "email" | "push" | "sms" | "slack" | "webhook" | "inbox" | "console" | "file";

export type Priority = "urgent" | "high" | "normal" | "low";

export type Status =
  | "pending"
  | "queued"
  | "processing"
  | "sent"
  | "delivered"
  | "failed"
  | "cancelled"
  | "expired"
  | "suppressed"
  | "ambiguous";

export type FactType =
  | "accepted"
  | "retrying"
  | "postponed"
  | "sent"
  | "delivered"
  | "failed"
  | "expired"
  | "suppressed"
  | "ambiguous"
  | "cancelled"
  | "retried"
  | "rescheduled"
  | "read"
  | "reminder.due";

export type ProblemCode =
  | "MALFORMED_JSON"
  | "BAD_SIGNATURE"
  | "UNAUTHENTICATED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "NOT_CANCELLABLE"
  | "NOT_RESCHEDULABLE"
  | "NOT_RETRYABLE"
  | "LAST_ADMIN_KEY"
  | "IDEMPOTENCY_MISMATCH"
  | "IDEMPOTENCY_IN_PROGRESS"
  | "ENDPOINT_DISABLED"
  | "TOO_MANY_ENDPOINTS"
  | "TOO_MANY_PLANS"
  | "PLAN_NOT_READY"
  | "SINK_IN_USE"
  | "MOVE_REFUSED"
  | "RESET"
  | "PAYLOAD_TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "VALIDATION_FAILED"
  | "TOO_MANY_FAILED_LOGINS"
  | "TOO_MANY_REQUESTS"
  | "TOO_MANY_STREAMS"
  | "BAD_REQUEST"
  | "NOT_CONFIGURED"
  | "INTERNAL"
  | "OVERLOADED"
  | "DATABASE_UNAVAILABLE"
  | "READ_TOO_SLOW"
  | "SHUTTING_DOWN";

export type Recipient = {
  /** The sender's name for a person. For example `"u_17"`. */ userId?: string;
  /** An e-mail address. For example `"ana@example.com"`. */
  email?: string;
  /** A phone number, with + and country code. For example `"+33612345678"`. */
  phone?: string;
  /** Devices to push to; without them, all that the user has registered. For example `["fcm-token-1"]`. */
  deviceTokens?: Array<string>;
  /** A channel of Slack. For example `"C024BE91L"`. */
  slackChannel?: string;
  /** Where it is posted. For example `"https://app.example.com/hook"`. */
  webhookUrl?: string;
  /** A language tag: it decides which of a template's texts are used. For example `"fr-CA"`. */
  locale?: string;
  /** The time zone whose clocks count. For example `"Europe/Paris"`. */
  timezone?: string;
  /** The sender's own fields: lists can be filtered and costs grouped by them. For example `{"orderId":"17"}`. */
  metadata?: { [name: string]: unknown };
};

export type Content = {
  /** The subject of a mail. For example `"Your order has shipped"`. */ subject?: string;
  /** The sender's address, in place of the provider's own. For example `"shop@example.com"`. */
  from?: string;
  /** The name beside the sender's address. For example `"Example Shop"`. */
  fromName?: string;
  /** Where answers to a mail go. For example `"help@example.com"`. */
  replyTo?: string;
  /** Who gets a copy, for all to see. For example `["carla@example.com"]`. */
  cc?: Array<string>;
  /** Who gets a copy unseen. For example `["archive@example.com"]`. */
  bcc?: Array<string>;
  /** Further headers of a mail. For example `{"X-Campaign":"autumn"}`. */
  headers?: { [name: string]: string };
  /** A mail as plain text. For example `"It will be with you on Tuesday."`. */
  textBody?: string;
  /** A mail as HTML. For example `"<p>It will be with you on Tuesday.</p>"`. */
  htmlBody?: string;
  /** The title. For example `"Your order has shipped"`. */
  title?: string;
  /** The text. For example `"It will be with you on Tuesday."`. */
  body?: string;
  /** A picture to show. For example `"https://app.example.com/parcel.png"`. */
  imageUrl?: string;
  /** What a tap leads to. For example `"/orders/17"`. */
  clickAction?: string;
  /** The icon to show. For example `"parcel"`. */
  icon?: string;
  /** The number on the application's icon. For example `1`. */
  badge?: number;
  /** The sound to play. For example `"default"`. */
  sound?: string;
  /** Fields for the application. For example `{"orderId":"17"}`. */
  data?: { [name: string]: unknown };
  /** The template to fill. For example `"welcome"`. */
  templateId?: string;
  /** Which version of it; the active one unless it is said. For example `3`. */
  templateVersion?: number;
  /** What the template is filled with. For example `{"name":"Ana"}`. */
  variables?: { [name: string]: unknown };
  /** Files that a mail brings along. */
  attachments?: Array<Attachment>;
};

export type Attachment = {
  /** A file's name. For example `"invoice.pdf"`. */ filename: string;
  /** A media type. For example `"application/pdf"`. */
  contentType: string;
  /** The file, in base64. For example `"JVBERi0xLjQK"`. */
  content: string;
};

export type RetryPolicy = {
  /** Tries in all, the first included. For example `5`. */ maxAttempts?: number;
  /** By how much each wait is longer than the one before. For example `2`. */
  backoffMultiplier?: number;
  /** The longest wait, in milliseconds. For example `300000`. */
  maxBackoffMs?: number;
};

export type Acceptance = {
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ notificationId: string;
  /** Where it stands. For example `"pending"`. */
  status: Status;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority: Priority;
  /** When it was accepted. For example `"2027-01-01T09:00:00.000Z"`. */
  enqueuedAt: string;
  /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  scheduledFor?: string;
  /** When it is likely to be sent, by what waits before it. For example `"2027-01-01T09:00:00.000Z"`. */
  estimatedDeliveryAt?: string;
};

export type BatchResult = {
  /** What became of each, in their order. */
  results: Array<{
    /** Its place in the list, from 0. For example `0`. */ index: number;
    /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
    notificationId?: string;
    /** Where it stands. For example `"pending"`. */
    status?: Status;
    /** Whether it was there already, by its idempotency key. */
    replayed?: boolean;
    /** Why it was refused. */
    error?: Problem;
  }>;
  /** How many came to what. */
  summary: {
    /** How many in all. For example `2`. */ total: number;
    /** How many were accepted. For example `2`. */
    succeeded: number;
    /** How many were refused. For example `0`. */
    failed: number;
    /** Of those accepted, how many are not yet due. For example `0`. */
    pending: number;
  };
};

export type NotificationRecord = {
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ notificationId: string;
  /** Where it stands. For example `"pending"`. */
  status: Status;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority: Priority;
  /** When it was accepted. For example `"2027-01-01T09:00:00.000Z"`. */
  enqueuedAt: string;
  /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  scheduledFor?: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
  /** Who gets it: what the channel needs. */
  recipient: Recipient;
  /** What it says: what the channel needs, or a template. */
  content: Content;
  /** The sender's own fields: lists can be filtered and costs grouped by them. For example `{"orderId":"17"}`. */
  metadata?: { [name: string]: unknown };
  /** Whose it was is no longer known, nor what it said. */
  forgotten?: boolean;
  /**
   * The sender's name for the request: the same key and body make no second notification. For example
   * `"order-17-shipped"`.
   */
  idempotencyKey?: string;
  /** How it is tried again, in place of the channel's own policy. */
  retryPolicy?: RetryPolicy;
  /**
   * What a lost answer of the provider means: send again (twice at most), hold, or wait for its report. For
   * example `"resend"`.
   */
  onAmbiguous?: "resend" | "hold" | "reconcile";
  /**
   * The trace it belongs to, as W3C Trace Context has it. For example
   * `"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`.
   */
  traceparent?: string;
  /** What tracing tools carry along. For example `"vendor=1"`. */
  tracestate?: string;
  /** The id of its trace. For example `"4bf92f3577b34da6a3ce929d0e0e4736"`. */
  traceId?: string;
};

export type NotificationPage = {
  /** What was found. */ data: Array<NotificationRecord>;
  /** Where to go on; null at the end. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  nextCursor: string | null;
  /** How many failures were looked at. For example `1207`. */
  looked: number;
  /**
   * How far back was looked, where there was more than could be looked at. For example
   * `"2027-01-01T09:00:00.000Z"`.
   */
  searchedUntil?: string;
};

export type NotificationDetail = {
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ notificationId: string;
  /** Where it stands. For example `"pending"`. */
  status: Status;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority: Priority;
  /** When it was accepted. For example `"2027-01-01T09:00:00.000Z"`. */
  enqueuedAt: string;
  /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  scheduledFor?: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
  /** Who gets it: what the channel needs. */
  recipient: Recipient;
  /** What it says: what the channel needs, or a template. */
  content: Content;
  /** The sender's own fields: lists can be filtered and costs grouped by them. For example `{"orderId":"17"}`. */
  metadata?: { [name: string]: unknown };
  /** Whose it was is no longer known, nor what it said. */
  forgotten?: boolean;
  /**
   * The sender's name for the request: the same key and body make no second notification. For example
   * `"order-17-shipped"`.
   */
  idempotencyKey?: string;
  /** How it is tried again, in place of the channel's own policy. */
  retryPolicy?: RetryPolicy;
  /**
   * What a lost answer of the provider means: send again (twice at most), hold, or wait for its report. For
   * example `"resend"`.
   */
  onAmbiguous?: "resend" | "hold" | "reconcile";
  /**
   * The trace it belongs to, as W3C Trace Context has it. For example
   * `"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`.
   */
  traceparent?: string;
  /** What tracing tools carry along. For example `"vendor=1"`. */
  tracestate?: string;
  /** The id of its trace. For example `"4bf92f3577b34da6a3ce929d0e0e4736"`. */
  traceId?: string;
  /** What was tried, and what it came to. */
  attempts: Array<Attempt>;
  /** All that happened to it, its acceptance included. */
  events: Array<TimelineEvent>;
};

export type Attempt = {
  /** Which try it was. For example `1`. */ number: number;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** The worker that had it. For example `"host-1:4021"`. */
  worker?: string;
  /** When it began. For example `"2027-01-01T09:00:00.000Z"`. */
  startedAt?: string;
  /** When it ended. For example `"2027-01-01T09:00:00.000Z"`. */
  endedAt?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
  /** How long it took, in milliseconds. For example `84`. */
  latencyMs?: number;
  /** What it cost, by estimate, in US dollars. For example `0.0008`. */
  cost?: number;
  /** What was handed to the provider and what it answered: the beginning of each, without credentials. */
  exchange?: {
    /** What the provider was sent. */
    request?: {
      /** Its media type. For example `"application/json"`. */ type: string;
      /**
       * Its body. For example
       * `"{\"type\":\"notification.sent\",\"timestamp\":\"2027-01-01T09:00:00.000Z\",\"data\":{}}"`.
       */
      body: string;
    };
    /** What the provider answered. */
    answer?: {
      /** Its HTTP status. For example `200`. */ status: number;
      /** The beginning of its body. For example `"ok"`. */
      body: string;
    };
  };
  /** The engine that it was claimed from, where that was not PostgreSQL. For example `"redis"`. */
  engine?: "redis" | "sqs";
};

export type TimelineEvent =
  | {
      /** What happened. For example `"accepted"`. */ type: "accepted";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status after. For example `"pending"`. */
      to: "pending" | "queued";
    }
  | {
      /** What happened. For example `"attempt"`. */ type: "attempt";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"processing"`. */
      from: "processing";
      /** The status after. For example `"sent"`. */
      to: "sent" | "pending" | "failed" | "expired" | "suppressed" | "ambiguous";
      /** Which try it was. For example `1`. */
      attempt: number;
      /** What it came to. For example `"unavailable"`. */
      outcome: string;
      /** The provider that carried it. For example `"smtp"`. */
      provider?: string;
      /** Why not, in words. For example `"450 mailbox busy"`. */
      error?: string;
      /** What else there is to say of it. For example `{"smtp":"450"}`. */
      detail?: { [name: string]: unknown };
    }
  | {
      /** What happened. For example `"postponed"`. */ type: "postponed";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"processing"`. */
      from: "processing";
      /** The status after. For example `"pending"`. */
      to: "pending";
      /** Which try it was. For example `1`. */
      attempt: number;
      /** Why not, in words. For example `"450 mailbox busy"`. */
      error: string;
      /** What else there is to say of it. */
      detail: {
        /** How long it has to wait, in milliseconds. For example `1200`. */ waitMs: number;
        /** For how long nobody has answered, in milliseconds. For example `3600000`. */
        silentMs?: number;
      };
    }
  | {
      /** What happened. For example `"retried"`. */ type: "retried";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"failed"`. */
      from: "failed" | "ambiguous" | "expired" | "cancelled";
      /** The status after. For example `"queued"`. */
      to: "queued";
    }
  | {
      /** What happened. For example `"rescheduled"`. */ type: "rescheduled";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"pending"`. */
      from: "pending" | "queued";
      /** The status after. For example `"pending"`. */
      to: "pending" | "queued";
      /** What else there is to say of it. */
      detail: {
        /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */ scheduledFor?: string;
        /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
        expiresAt?: string;
        /** The lane it waits in. For example `"urgent"`. */
        priority: Priority;
      };
    }
  | {
      /** What happened. For example `"cancelled"`. */ type: "cancelled";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"pending"`. */
      from: "pending" | "queued";
      /** The status after. For example `"cancelled"`. */
      to: "cancelled";
    }
  | {
      /** What happened. For example `"expired"`. */ type: "expired";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"pending"`. */
      from: "pending" | "queued";
      /** The status after. For example `"expired"`. */
      to: "expired";
    }
  | {
      /** What happened. For example `"delivered"`. */ type: "delivered";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"sent"`. */
      from: "sent" | "ambiguous";
      /** The status after. For example `"delivered"`. */
      to: "delivered";
      /** The provider that carried it. For example `"smtp"`. */
      provider: string;
      /** What else there is to say of it. */
      detail:
        | {
            /** When the provider says it happened. For example `"2027-01-01T09:00:00.000Z"`. */ reportedAt: string;
            /** The provider's own code. For example `"5.1.1"`. */
            code?: string;
            /** The provider's name for the message. For example `"0100018f-2c1d"`. */
            receipt: string;
          }
        | {
            /** When the reader's device said that it has it. For example `"2027-01-01T09:00:00.000Z"`. */
            ackedAt: string;
          };
    }
  | {
      /** What happened. For example `"bounced"`. */ type: "bounced";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"sent"`. */
      from: "sent" | "delivered";
      /** The status after. For example `"failed"`. */
      to: "failed";
      /** The provider that carried it. For example `"smtp"`. */
      provider: string;
      /** Why not, in words. For example `"450 mailbox busy"`. */
      error?: string;
      /** What else there is to say of it. */
      detail: {
        /** When the provider says it happened. For example `"2027-01-01T09:00:00.000Z"`. */ reportedAt: string;
        /** The provider's own code. For example `"5.1.1"`. */
        code?: string;
        /** The provider's name for the message. For example `"0100018f-2c1d"`. */
        receipt: string;
      };
    }
  | {
      /** What happened. For example `"purged"`. */ type: "purged";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"failed"`. */
      from: "failed";
      /** The status after. For example `"failed"`. */
      to: "failed";
      /** What else there is to say of it. */
      detail: {
        /** The plan by which it happened. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ plan: string;
      };
    }
  | {
      /** What happened. For example `"reminder.due"`. */ type: "reminder.due";
      /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
      at: string;
      /** The status before. For example `"queued"`. */
      from: "queued";
      /** The status after. For example `"queued"`. */
      to: "queued";
      /** What else there is to say of it. */
      detail: {
        /** The reminder that made it. For example `"game-17"`. */ key: string;
        /** What it was a reminder of: when that begins. For example `"2027-01-01T09:00:00.000Z"`. */
        at: string;
        /** How long before that. For example `"PT1H"`. */
        before: string;
      };
    };

export type Rescheduling = {
  /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */ scheduledFor?: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string | null;
  /** The lane it waits in. For example `"urgent"`. */
  priority?: Priority;
};

export type Rescheduled = {
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ notificationId: string;
  /** Where it stands. For example `"pending"`. */
  status: Status;
  /** The lane it waits in. For example `"urgent"`. */
  priority: Priority;
  /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  scheduledFor?: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
};

export type Explanation = {
  /** Whether it would be sent, now or later. */ wouldSend: boolean;
  /** The lane it waits in. For example `"urgent"`. */
  priority: Priority;
  /** When it would be sent. For example `"2027-01-01T09:00:00.000Z"`. */
  dueAt: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
  /** Why nothing is sent to the recipient, or false. */
  suppressed: false | "bounce" | "complaint" | "manual";
  /** What it would say, filled in. For example `{"subject":"Your order has shipped"}`. */
  content?: { [name: string]: unknown };
  /** Why its template cannot be filled. For example `"undefined variable: name"`. */
  templateError?: string;
  /** What it came to. */
  outcome: {
    /** What the first attempt would come to. For example `"accepted"`. */ kind: string;
    /** Why, in words. For example `"moving to another provider"`. */
    reason?: string;
  };
  /** What it would come to. For example `"pending"`. */
  status: Status;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** Providers that would be passed over, and why. For example `[]`. */
  passedOver?: Array<unknown>;
  /** As the channel's own provider would have sent it; not of what an older release kept. */
  wire: Array<{
    /** The provider that carried it. For example `"smtp"`. */ provider: string;
    /** To which device. For example `"fcm-token-1"`. */
    device?: string;
    /** How many bytes it has. For example `412`. */
    bytes: number;
    /** All of it. For example `"From: bell@example.com\r\nTo: ana@example.com\r\n"`. */
    body: string;
    [name: string]: unknown;
  }>;
  /** The providers that would be asked, in their order. */
  route: Array<{
    /** The provider that carried it. For example `"smtp"`. */ provider: string;
    /** Whether the provider could carry it. */
    accepts: boolean;
    /** Why it could not. */
    faults?: Array<{
      /** Where, as a JSON Pointer. For example `"/content/subject"`. */ path: string;
      /** What is wrong there. For example `"is too long"`. */
      message: string;
    }>;
    /** Whether sends are kept from it for now. For example `"closed"`. */
    breaker: "closed" | "half-open" | "open";
    /** What may be sent, and what room there is. For example `[{"per":"second","most":10,"burst":10,"room":10}]`. */
    limits: Array<{ [name: string]: unknown }>;
    /** What it can do. For example `{"batch":false,"receipts":true}`. */
    capabilities: { [name: string]: unknown };
  }>;
  /** The devices it would be pushed to. */
  devices?: Array<{
    /** The device's token. For example `"fcm-token-1"`. */ token: string;
    /** What kind of device it is. For example `"android"`. */
    platform: string;
  }>;
  /** The policy that holds. For example `{"maxAttempts":5,"backoffMultiplier":2,"maxBackoffMs":300000}`. */
  retryPolicy: { [name: string]: unknown };
  /** How long it would be tried. */
  retriedFor: {
    /** At the least, in milliseconds. For example `30000`. */ leastMs: number;
    /** At the most, in milliseconds. For example `60000`. */
    mostMs: number;
  };
  /** What a lost answer of the provider would mean. For example `"resend"`. */
  onAmbiguous: string;
  /** How often it would be sent again though it may have been sent. For example `2`. */
  resends: number;
};

export type Fact = {
  /** Where to go on after this one. For example `"7:1000:0:3"`. */ position: string;
  /** The same however often it is told. For example `"018f2c1d-7000-7000-8000-000000000000.3"`. */
  id: string;
  /** What happened. For example `"accepted"`. */
  type: FactType;
  /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  notificationId: string;
  /** What the record calls it. For example `"attempt"`. */
  event?: string;
  /** The status before. For example `"pending"`. */
  from?: Status;
  /** The status after. For example `"pending"`. */
  to?: Status;
  /** Which try it was. For example `1`. */
  attempt?: number;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
  /** How long it took, in milliseconds. For example `84`. */
  latencyMs?: number;
  /** What it cost, by estimate, in US dollars. For example `0.0008`. */
  cost?: number;
  /** The way it took. For example `"email"`. */
  channel?: string;
  /** The lane it waits in. For example `"urgent"`. */
  priority?: Priority;
  /** The sender's name for a person. For example `"u_17"`. */
  userId?: string;
  /** When it was accepted. For example `"2027-01-01T09:00:00.000Z"`. */
  acceptedAt?: string;
  /** What else there is to say of it. For example `{"waitMs":1200}`. */
  detail?: { [name: string]: unknown };
};

export type FactPage = {
  /** What was found. */ data: Array<Fact>;
  /** Where to go on. For example `"7:1000:0:4"`. */
  next: string;
  /** Whether there is nothing more for now. */
  isAtEnd: boolean;
};

export type ScheduleRequest = {
  /** The time zone whose clocks count. For example `"Europe/Paris"`. */ timezone?: string;
  /** When it begins to count. For example `"2027-01-01T09:00:00.000Z"`. */
  from?: string;
  /** When it ends. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** Whether ticks that nobody was there for fire once afterwards, or not at all. For example `"once"`. */
  catchUp?: "once" | "skip";
  /** What is sent: everything but its time. */
  notification: Notice;
} & (
  | {
      /** When: five fields, or six with seconds. For example `"0 9 * * 1"`. */ cron: string;
      every?: never;
    }
  | {
      cron?: never;
      /** How often: a duration, counted from `from`. For example `"PT15M"`. */
      every: string;
    }
);

export type Schedule = {
  /** When: five fields, or six with seconds. For example `"0 9 * * 1"`. */ cron?: string;
  /** How often: a duration, counted from `from`. For example `"PT15M"`. */
  every?: string;
  /** The time zone whose clocks count. For example `"Europe/Paris"`. */
  timezone?: string;
  /** When it begins to count. For example `"2027-01-01T09:00:00.000Z"`. */
  from?: string;
  /** When it ends. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** Whether ticks that nobody was there for fire once afterwards, or not at all. For example `"once"`. */
  catchUp?: "once" | "skip";
  /** What is sent: everything but its time. */
  notification: Notice;
  /** The name that its maker gave it. For example `"weekly-report"`. */
  key: string;
  /** Whether it is paused. */
  paused: boolean;
  /** When it fires next. For example `"2027-01-01T09:00:00.000Z"`. */
  nextAt?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
  /** When that is tried again. For example `"2027-01-01T09:00:00.000Z"`. */
  retryAt?: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  updatedAt: string;
};

export type ScheduleRun = {
  /** The instant at which it was to fire. For example `"2027-01-01T09:00:00.000Z"`. */ tick: string;
  /** When it was seen to. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
  /** What became of it. For example `"sending"`. */
  outcome: "sending" | "sent" | "skipped" | "failed";
  /** How many ticks before it were passed over. For example `0`. */
  skipped: number;
  /** The notifications that were made. For example `["018f2c1d-7000-7000-8000-000000000000"]`. */
  notificationIds: Array<string>;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
};

export type ScheduleNext = {
  /** The next instants at which it fires. For example `["2027-01-01T09:00:00.000Z"]`. */ data: Array<string>;
};

export type ReminderRequest = {
  /** What people are reminded of: when that begins. For example `"2027-01-01T09:00:00.000Z"`. */ at: string;
  /** The time zone whose clocks count. For example `"Europe/Paris"`. */
  timezone?: string;
  /** How long before. For example `["P1D","PT1H"]`. */
  before?: Array<string>;
  /** From where offsets are inherited, the nearest first. For example `["channel:5","guild:1"]`. */
  scopes?: Array<string>;
  /** What is sent: everything but its time. */
  notification: Notice;
};

export type Reminder = {
  /** What people are reminded of: when that begins. For example `"2027-01-01T09:00:00.000Z"`. */ at: string;
  /** The time zone whose clocks count. For example `"Europe/Paris"`. */
  timezone?: string;
  /** How long before. For example `["P1D","PT1H"]`. */
  before?: Array<string>;
  /** From where offsets are inherited, the nearest first. For example `["channel:5","guild:1"]`. */
  scopes?: Array<string>;
  /** What is sent: everything but its time. */
  notification: Notice;
  /** The name that its maker gave it. For example `"weekly-report"`. */
  key: string;
  /** How long before it people are reminded, as it holds now. For example `["P1D","PT1H"]`. */
  offsets: Array<string>;
  /** Who decided that: the reminder itself, or a scope. For example `"guild:1"`. */
  offsetsFrom: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  updatedAt: string;
};

export type ReminderWithPlan = {
  /** What people are reminded of: when that begins. For example `"2027-01-01T09:00:00.000Z"`. */ at: string;
  /** The time zone whose clocks count. For example `"Europe/Paris"`. */
  timezone?: string;
  /** How long before. For example `["P1D","PT1H"]`. */
  before?: Array<string>;
  /** From where offsets are inherited, the nearest first. For example `["channel:5","guild:1"]`. */
  scopes?: Array<string>;
  /** What is sent: everything but its time. */
  notification: Notice;
  /** The name that its maker gave it. For example `"weekly-report"`. */
  key: string;
  /** How long before it people are reminded, as it holds now. For example `["P1D","PT1H"]`. */
  offsets: Array<string>;
  /** Who decided that: the reminder itself, or a scope. For example `"guild:1"`. */
  offsetsFrom: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  updatedAt: string;
  /** What will be sent when, and what was. */
  plan: Array<ReminderLine>;
};

export type ReminderLine = {
  /** What it is a reminder of: when that begins. For example `"2027-01-01T09:00:00.000Z"`. */ at: string;
  /** How long before. For example `"PT1H"`. */
  before: string;
  /** When it is due. For example `"2027-01-01T09:00:00.000Z"`. */
  dueAt: string;
  /** Where this line of the plan stands. For example `"planned"`. */
  status: "planned" | "sending" | "sent" | "missed" | "failed";
  /** When that is tried again. For example `"2027-01-01T09:00:00.000Z"`. */
  retryAt?: string;
  /** When it ended. For example `"2027-01-01T09:00:00.000Z"`. */
  endedAt?: string;
  /** The notifications that were made. For example `["018f2c1d-7000-7000-8000-000000000000"]`. */
  notificationIds: Array<string>;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
};

export type ReminderScope = {
  /** A name from which reminders inherit offsets. For example `"guild:1"`. */ scope: string;
  /** How long before. For example `["P1D","PT1H"]`. */
  before: Array<string>;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  updatedAt: string;
  /** How far the last change has come. */
  replan?: {
    /** How many were planned anew. For example `120`. */ done: number;
    /** How many in all. For example `2`. */
    total: number;
    /** When it began. For example `"2027-01-01T09:00:00.000Z"`. */
    startedAt: string;
    /** When it was done. For example `"2027-01-01T09:00:00.000Z"`. */
    finishedAt?: string;
  };
};

export type EndpointRequest = {
  /** Where callbacks are posted. For example `"https://app.example.com/callbacks"`. */ url: string;
  /** What it is told of; all unless it is said. For example `["accepted"]`. */
  events?: Array<FactType>;
  /** How long a callback is tried. For example `"best_effort"`. */
  policy?: "best_effort" | "aggressive" | "persistent";
  /** What is kept in order, one after another. For example `"notification"`. */
  fifo?: "notification" | "user" | "endpoint";
  /** How many are posted at most. */
  rate?: {
    /** The period. For example `"second"`. */ per: "second" | "minute" | "hour" | "day";
    /** How many in a period. For example `100`. */
    most: number;
  };
  /** What it is for. For example `"the shop's backend"`. */
  description?: string;
};

export type EndpointChange = {
  /** Where callbacks are posted. For example `"https://app.example.com/callbacks"`. */ url?: string;
  /** What it is told of; null for all. For example `["accepted"]`. */
  events?: Array<FactType> | null;
  /** How long a callback is tried. For example `"best_effort"`. */
  policy?: "best_effort" | "aggressive" | "persistent";
  /** What is kept in order, one after another. For example `"notification"`. */
  fifo?: "notification" | "user" | "endpoint" | null;
  /** How many are posted at most. */
  rate?: {
    /** The period. For example `"second"`. */ per: "second" | "minute" | "hour" | "day";
    /** How many in a period. For example `100`. */
    most: number;
  } | null;
  /** What it is for. For example `"the shop's backend"`. */
  description?: string | null;
};

export type Endpoint = {
  /** The endpoint's id; `requests` is the built-in one. For example `"requests"`. */ id: string;
  /** Where callbacks are posted. For example `"https://app.example.com/callbacks"`. */
  url?: string;
  /** What it is told of; all unless it is said. For example `["accepted"]`. */
  events?: Array<FactType>;
  /** How long a callback is tried. For example `"best_effort"`. */
  policy: "best_effort" | "aggressive" | "persistent";
  /** What is kept in order, one after another. For example `"notification"`. */
  fifo?: "notification" | "user" | "endpoint";
  /** How many are posted at most. */
  rate?: {
    /** The period. For example `"second"`. */ per: "second" | "minute" | "hour" | "day";
    /** How many in a period. For example `100`. */
    most: number;
  };
  /** What it is for. For example `"the shop's backend"`. */
  description?: string;
  /** How it is. For example `"active"`. */
  state: "active" | "paused" | "disabled";
  /** Why, in words. For example `"moving to another provider"`. */
  reason?: string;
  /**
   * What verifies callbacks that are signed with `v1a`. For example
   * `"whpk_kD2aKZ5Ck2cYw2RZ3cmbWuU0Jp1eZbUjCXcGB6bn7fs="`.
   */
  publicKey: string;
  /** Until when the secret before signs as well. For example `"2027-01-01T09:00:00.000Z"`. */
  previousSecretUntil?: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  changedAt: string;
  /** When a callback was last taken. For example `"2027-01-01T09:00:00.000Z"`. */
  lastSuccessAt?: string;
  /** Since when none was taken. For example `"2027-01-01T09:00:00.000Z"`. */
  failingSince?: string;
};

export type SecretEndpoint = {
  /** The endpoint's id. For example `"ep_5f3a0c1d2e4b6f8091a2b3c4"`. */ id: string;
  /** Where callbacks are posted. For example `"https://app.example.com/callbacks"`. */
  url?: string;
  /** What it is told of; all unless it is said. For example `["accepted"]`. */
  events?: Array<FactType>;
  /** How long a callback is tried. For example `"best_effort"`. */
  policy: "best_effort" | "aggressive" | "persistent";
  /** What is kept in order, one after another. For example `"notification"`. */
  fifo?: "notification" | "user" | "endpoint";
  /** How many are posted at most. */
  rate?: {
    /** The period. For example `"second"`. */ per: "second" | "minute" | "hour" | "day";
    /** How many in a period. For example `100`. */
    most: number;
  };
  /** What it is for. For example `"the shop's backend"`. */
  description?: string;
  /** How it is. For example `"active"`. */
  state: "active" | "paused" | "disabled";
  /** Why, in words. For example `"moving to another provider"`. */
  reason?: string;
  /**
   * What verifies callbacks that are signed with `v1a`. For example
   * `"whpk_kD2aKZ5Ck2cYw2RZ3cmbWuU0Jp1eZbUjCXcGB6bn7fs="`.
   */
  publicKey: string;
  /** Until when the secret before signs as well. For example `"2027-01-01T09:00:00.000Z"`. */
  previousSecretUntil?: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  changedAt: string;
  /** When a callback was last taken. For example `"2027-01-01T09:00:00.000Z"`. */
  lastSuccessAt?: string;
  /** Since when none was taken. For example `"2027-01-01T09:00:00.000Z"`. */
  failingSince?: string;
  /**
   * What callbacks are signed with (`v1`); shown only this once. For example
   * `"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`.
   */
  secret: string;
};

export type EndpointTest = {
  /** The callback's id, the same for every try. For example `"msg_018f2c1d70007000"`. */ webhookId: string;
  /** Whether the receiver took it. */
  delivered: boolean;
  /** How long it took, in milliseconds. For example `84`. */
  latencyMs: number;
  /** The receiver's HTTP status. For example `200`. */
  status?: number;
  /** The beginning of the receiver's answer. For example `"ok"`. */
  body?: string;
  /** Why it was not taken. For example `"connection refused"`. */
  error?: string;
};

export type Delivery = {
  /** Its id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ id: string;
  /** The callback's id, the same for every try. For example `"msg_018f2c1d70007000"`. */
  webhookId: string;
  /** Where it is posted. For example `"requests"`. */
  endpointId: string;
  /** What it tells of. For example `"notification.sent"`. */
  type: string;
  /** Where it stands. For example `"pending"`. */
  status: Status;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** What is posted each time. */
  request: {
    /** Where callbacks are posted. For example `"https://app.example.com/callbacks"`. */ url?: string;
    /** Its headers. For example `{"content-type":"application/json","webhook-id":"msg_018f2c1d70007000"}`. */
    headers: { [name: string]: unknown };
    /**
     * Its body. For example
     * `"{\"type\":\"notification.sent\",\"timestamp\":\"2027-01-01T09:00:00.000Z\",\"data\":{}}"`.
     */
    body: string;
  };
  /** The last twenty tries. */
  tries: Array<{
    /** Which try it was. For example `1`. */ number: number;
    /** When it began. For example `"2027-01-01T09:00:00.000Z"`. */
    startedAt?: string;
    /** When it ended. For example `"2027-01-01T09:00:00.000Z"`. */
    endedAt: string;
    /** What it came to. For example `"unavailable"`. */
    outcome?: string;
    /** Why not, in words. For example `"450 mailbox busy"`. */
    error?: string;
    /** How long it took, in milliseconds. For example `84`. */
    latencyMs?: number;
    /** What the receiver answered. */
    answer?: {
      /** Its HTTP status. For example `200`. */ status: number;
      /** The beginning of its body. For example `"ok"`. */
      body: string;
    };
  }>;
};

export type Replay = {
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */ since: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** Of these types, of those that the endpoint is told of. For example `["accepted"]`. */
  types?: Array<FactType>;
  /** Of this notification alone. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  notification?: string;
  /** Whether nothing is done, and only counted. */
  dryRun?: boolean;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type Replayed = {
  /** How many it is about. For example `12`. */ matched: number;
  /** How many were told again. For example `12`. */
  replayed: number;
  /** Where to go on; null at the end. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  nextCursor: string | null;
  /** Whether nothing is done, and only counted. */
  dryRun: boolean;
};

export type DeadCallback = {
  /** Its id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ id: string;
  /** The callback's id, the same for every try. For example `"msg_018f2c1d70007000"`. */
  webhookId: string;
  /** Where it is posted. For example `"requests"`. */
  endpointId: string;
  /** What it tells of. For example `"notification.sent"`. */
  type: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it failed for good. For example `"2027-01-01T09:00:00.000Z"`. */
  failedAt: string;
  /** How often it was tried. For example `12`. */
  attempts: number;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
  /** What it tells. For example `{"notificationId":"018f2c1d-7000-7000-8000-000000000000"}`. */
  data: { [name: string]: unknown };
};

export type Requeue = {
  /** Whether nothing is done, and only counted. */ dryRun?: boolean;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
} & (
  | {
      /** Which, by their ids. For example `["018f2c1d-7000-7000-8000-000000000000"]`. */ ids: Array<string>;
      filter?: never;
    }
  | {
      ids?: never;
      /** Which, by what they have in common. */
      filter: {
        /** Of this endpoint alone. For example `"requests"`. */ endpoint?: string;
        /** Of this type alone. For example `"notification.sent"`. */
        type?: string;
        /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
        since?: string;
        /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
        until?: string;
      };
    }
);

export type Requeued = {
  /** How many it is about. For example `12`. */ matched: number;
  /** How many were put back into their lanes. For example `12`. */
  requeued: number;
  /** How many are still to go. For example `0`. */
  remaining: number;
  /** Where to go on; null at the end. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  nextCursor: string | null;
  /** Whether nothing is done, and only counted. */
  dryRun: boolean;
};

export type DeadLetter = {
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ notificationId: string;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority: Priority;
  /** When it was accepted. For example `"2027-01-01T09:00:00.000Z"`. */
  enqueuedAt: string;
  /** When it failed for good. For example `"2027-01-01T09:00:00.000Z"`. */
  failedAt: string;
  /** How often it was tried. For example `5`. */
  attempts: number;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
};

export type DeadLetterGroup = {
  /** The error without what tells one message from another. For example `"mailbox busy"`. */ cause?: string;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** How many there are. For example `37`. */
  count: number;
  /** When the newest of them failed. For example `"2027-01-01T09:00:00.000Z"`. */
  newestAt: string;
  /** When the oldest of them failed. For example `"2027-01-01T09:00:00.000Z"`. */
  oldestAt: string;
  /** The newest three. For example `["018f2c1d-7000-7000-8000-000000000000"]`. */
  examples: Array<string>;
};

export type DeadLetterGroups = {
  /** What was found. */ data: Array<DeadLetterGroup>;
  /** Dead letters that were found, of all groups. For example `112`. */
  total: number;
  /** How many failures were looked at. For example `1207`. */
  looked: number;
  /**
   * How far back was looked, where there was more than could be looked at. For example
   * `"2027-01-01T09:00:00.000Z"`.
   */
  searchedUntil?: string;
  /** Where to go on; null at the end. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  nextCursor: string | null;
};

export type DeadLetterRequeue = {
  /** Whether nothing is done, and only counted. */ dryRun?: boolean;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
} & (
  | {
      /** Which, by their ids. For example `["018f2c1d-7000-7000-8000-000000000000"]`. */ ids: Array<string>;
      filter?: never;
    }
  | {
      ids?: never;
      /** Which, by what they have in common. */
      filter: DeadLetterFilter;
    }
);

export type DeadLetterFilter = {
  /** The way it takes. For example `"email"`. */ channel?: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority?: Priority;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** The sender's name for a person. For example `"u_17"`. */
  userId?: string;
  /** The template to fill. For example `"welcome"`. */
  templateId?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Part of the error, in whatever case. For example `"450 mailbox busy"`. */
  error?: string;
  /** As `GET /v1/dead-letters/groups` names it. For example `"mailbox busy"`. */
  cause?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
};

export type PlanRequest = {
  /** What is to be done: send again, or take off the list. For example `"requeue"`. */ kind: "requeue" | "purge";
  /** So many a second. For example `100`. */
  rate?: number;
} & (
  | {
      /** Which, by what they have in common. */ filter: DeadLetterFilter;
      ids?: never;
    }
  | {
      filter?: never;
      /** Which, by their ids. For example `["018f2c1d-7000-7000-8000-000000000000"]`. */
      ids: Array<string>;
    }
);

export type PlanApplication = {
  /** So many a second. For example `100`. */ rate?: number;
  /** So many go first. For example `10`. */
  canary?: number;
  /**
   * Whether it goes on after those when somebody says so, or by itself when all of them were sent. For example
   * `"confirmed"`.
   */
  continue?: "confirmed" | "sent";
};

export type Plan = {
  /** The plan's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ planId: string;
  /** The last two are requeues that were not looked over. For example `"requeue"`. */
  kind: "requeue" | "purge" | "retry" | "callback-retry";
  /** How far it is. For example `"counting"`. */
  state: "counting" | "ready" | "applying" | "waiting" | "done" | "aborted" | "lapsed";
  /** Which, by what they have in common. */
  filter?: {
    /** The way it takes. For example `"email"`. */ channel?: Channel;
    /** The lane it waits in. For example `"urgent"`. */
    priority?: Priority;
    /** The provider that carried it. For example `"smtp"`. */
    provider?: string;
    /** The sender's name for a person. For example `"u_17"`. */
    userId?: string;
    /** The template to fill. For example `"welcome"`. */
    templateId?: string;
    /** What it came to. For example `"unavailable"`. */
    outcome?: string;
    /** Part of the error, in whatever case. For example `"the database did not answer"`. */
    error?: string;
    /** As `GET /v1/dead-letters/groups` names it. For example `"mailbox busy"`. */
    cause?: string;
    /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
    since?: string;
    /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
    until?: string;
    /** Of this endpoint alone. For example `"requests"`. */
    endpoint?: string;
    /** Of this type alone. For example `"notification.sent"`. */
    type?: string;
  };
  /** Who made it. For example `"key:ck_5f3a"`. */
  madeBy: string;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** How many it is for. Nothing else is touched.. For example `1200`. */
  count: number;
  /** There are more than a plan may hold. */
  truncated: boolean;
  /** How many failures were looked at. For example `1207`. */
  looked: number;
  /** How many were left out, by reason. */
  excluded: {
    /** There is none of that id, or retention has taken it. For example `0`. */ gone?: number;
    /** It waits to be sent, or is being sent. For example `1`. */
    waiting?: number;
    /** It was sent since, or may have been. For example `2`. */
    sent?: number;
    /** It was cancelled, or ended otherwise. For example `0`. */
    ended?: number;
    /** It was taken off the list before. For example `0`. */
    purged?: number;
    /** It was sent again since, and has failed again. For example `0`. */
    changed?: number;
    /** It was brought back from the archive, to be read. For example `0`. */
    restored?: number;
    /** Its user was forgotten. For example `0`. */
    forgotten?: number;
    /** Its `expiresAt` has passed. For example `3`. */
    expired?: number;
    /** A later one with the same template was sent to the same user. For example `0`. */
    reached?: number;
    /** Nothing more is sent to its address. For example `1`. */
    suppressed?: number;
  };
  /** What carrying it out takes. */
  estimate: {
    /** Of sending all of them, in US dollars. For example `0.96`. */ cost: number;
    /** Of how many nobody knows what they cost. For example `0`. */
    unpriced: number;
    /** How long it takes at this rate. For example `12`. */
    seconds: number;
    /** So many a second. For example `100`. */
    rate: number;
  };
  /** How far it has come. */
  progress: {
    /** How many were seen to. For example `300`. */ done: number;
    /** How many were passed over since, by reason. */
    skipped: {
      /** There is none of that id, or retention has taken it. For example `0`. */ gone?: number;
      /** It waits to be sent, or is being sent. For example `1`. */
      waiting?: number;
      /** It was sent since, or may have been. For example `2`. */
      sent?: number;
      /** It was cancelled, or ended otherwise. For example `0`. */
      ended?: number;
      /** It was taken off the list before. For example `0`. */
      purged?: number;
      /** It was sent again since, and has failed again. For example `0`. */
      changed?: number;
      /** It was brought back from the archive, to be read. For example `0`. */
      restored?: number;
      /** Its user was forgotten. For example `0`. */
      forgotten?: number;
      /** Its `expiresAt` has passed. For example `3`. */
      expired?: number;
      /** A later one with the same template was sent to the same user. For example `0`. */
      reached?: number;
      /** Nothing more is sent to its address. For example `1`. */
      suppressed?: number;
    };
    /** How many are still to go. For example `900`. */
    remaining: number;
  };
  /** Those that went first, and how they fared. */
  canary?: {
    /** How many went first. For example `10`. */ done: number;
    /** How many have which status. For example `{"sent":9,"queued":1}`. */
    standing: { [name: string]: number };
  };
  /** When it began. For example `"2027-01-01T09:00:00.000Z"`. */
  startedAt?: string;
  /** When it was done. For example `"2027-01-01T09:00:00.000Z"`. */
  finishedAt?: string;
  /** Why the last batch failed. It is tried again.. For example `"the database did not answer"`. */
  error?: string;
};

export type TemplateRequest = {
  /** The way it takes. For example `"email"`. */
  channel: "email" | "push" | "sms" | "slack" | "webhook" | "inbox" | "console" | "file" | "partial";
  /** Its name. For example `"Welcome"`. */
  name: string;
  /** The texts. */
  content: {
    /** The subject of a mail. For example `"Your order has shipped"`. */ subject?: string;
    /** A mail as plain text. For example `"It will be with you on Tuesday."`. */
    textBody?: string;
    /** A mail as HTML. For example `"<p>It will be with you on Tuesday.</p>"`. */
    htmlBody?: string;
    /**
     * A mail as MJML, which is made HTML of. For example
     * `"<mjml><mj-body><mj-section><mj-column><mj-text>Hello</mj-text></mj-column></mj-section></mj-body></mjml>"`.
     */
    mjml?: string;
    /** The title. For example `"Your order has shipped"`. */
    title?: string;
    /** The text. For example `"It will be with you on Tuesday."`. */
    body?: string;
    /** A picture to show. For example `"https://app.example.com/parcel.png"`. */
    imageUrl?: string;
    /** What a tap leads to. For example `"/orders/17"`. */
    clickAction?: string;
    /** The icon to show. For example `"parcel"`. */
    icon?: string;
    /** The sound to play. For example `"default"`. */
    sound?: string;
    /** The number on the application's icon. For example `1`. */
    badge?: number;
    /** Fields for the application. For example `{"orderId":"17"}`. */
    data?: { [name: string]: unknown };
    /** The texts in other languages, by language tag. For example `{"fr":{"subject":"Bienvenue, {{ name }}"}}`. */
    locales?: {
      [name: string]: {
        /** . */ subject?: string;
        /** . */
        textBody?: string;
        /** . */
        htmlBody?: string;
        /** . */
        mjml?: string;
        /** . */
        title?: string;
        /** . */
        body?: string;
        /** . */
        imageUrl?: string;
        /** . */
        clickAction?: string;
        /** . */
        icon?: string;
        /** . */
        sound?: string;
        /** . */
        badge?: number;
        /** . */
        data?: { [name: string]: unknown };
      };
    };
  };
  /** The language that templates are written in. For example `"liquid"`. */
  engine?: "liquid";
  /** Whether a variable that is missing is an error. */
  strict?: boolean;
  /** Whether it is sent from now on. */
  activate?: boolean;
};

export type Template = {
  /** The template's name. For example `"welcome"`. */ id: string;
  /** Which version. For example `3`. */
  version: number;
  /** Whether this is the version that is sent. */
  isActive: boolean;
  /** The version that is sent. For example `3`. */
  activeVersion: number;
  /** The version that was stored last. For example `3`. */
  latestVersion: number;
  /** The channel it is for. For example `"email"`. */
  channel: "email" | "push" | "sms" | "slack" | "webhook" | "inbox" | "console" | "file" | "partial";
  /** Its name. For example `"Welcome"`. */
  name: string;
  /** The language that templates are written in. For example `"liquid"`. */
  engine: string;
  /** Whether a variable that is missing is an error. */
  strict: boolean;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** The texts. */
  content: {
    /** The subject of a mail. For example `"Your order has shipped"`. */ subject?: string;
    /** A mail as plain text. For example `"It will be with you on Tuesday."`. */
    textBody?: string;
    /** A mail as HTML. For example `"<p>It will be with you on Tuesday.</p>"`. */
    htmlBody?: string;
    /**
     * A mail as MJML, which is made HTML of. For example
     * `"<mjml><mj-body><mj-section><mj-column><mj-text>Hello</mj-text></mj-column></mj-section></mj-body></mjml>"`.
     */
    mjml?: string;
    /** The title. For example `"Your order has shipped"`. */
    title?: string;
    /** The text. For example `"It will be with you on Tuesday."`. */
    body?: string;
    /** A picture to show. For example `"https://app.example.com/parcel.png"`. */
    imageUrl?: string;
    /** What a tap leads to. For example `"/orders/17"`. */
    clickAction?: string;
    /** The icon to show. For example `"parcel"`. */
    icon?: string;
    /** The sound to play. For example `"default"`. */
    sound?: string;
    /** The number on the application's icon. For example `1`. */
    badge?: number;
    /** Fields for the application. For example `{"orderId":"17"}`. */
    data?: { [name: string]: unknown };
    /** The texts in other languages, by language tag. For example `{"fr":{"subject":"Bienvenue, {{ name }}"}}`. */
    locales?: {
      [name: string]: {
        /** . */ subject?: string;
        /** . */
        textBody?: string;
        /** . */
        htmlBody?: string;
        /** . */
        mjml?: string;
        /** . */
        title?: string;
        /** . */
        body?: string;
        /** . */
        imageUrl?: string;
        /** . */
        clickAction?: string;
        /** . */
        icon?: string;
        /** . */
        sound?: string;
        /** . */
        badge?: number;
        /** . */
        data?: { [name: string]: unknown };
      };
    };
  };
};

export type TemplateVersion = {
  /** The template's name. For example `"welcome"`. */ id: string;
  /** Which version. For example `3`. */
  version: number;
  /** Whether this is the version that is sent. */
  isActive: boolean;
  /** The version that is sent. For example `3`. */
  activeVersion: number;
  /** The version that was stored last. For example `3`. */
  latestVersion: number;
  /** The way it takes. For example `"email"`. */
  channel: "email" | "push" | "sms" | "slack" | "webhook" | "inbox" | "console" | "file" | "partial";
  /** Its name. For example `"Welcome"`. */
  name: string;
  /** The language that templates are written in. For example `"liquid"`. */
  engine: string;
  /** Whether a variable that is missing is an error. */
  strict: boolean;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
};

export type TemplatePreview = {
  /** The template's name. For example `"welcome"`. */ id: string;
  /** Which version. For example `3`. */
  version: number;
  /** Whose texts were used. For example `"fr"`. */
  locale: string;
  /** What would be sent. */
  content: {
    /** The subject of a mail. For example `"Your order has shipped"`. */ subject?: string;
    /** A mail as plain text. For example `"It will be with you on Tuesday."`. */
    textBody?: string;
    /** A mail as HTML. For example `"<p>It will be with you on Tuesday.</p>"`. */
    htmlBody?: string;
    /**
     * A mail as MJML, which is made HTML of. For example
     * `"<mjml><mj-body><mj-section><mj-column><mj-text>Hello</mj-text></mj-column></mj-section></mj-body></mjml>"`.
     */
    mjml?: string;
    /** The title. For example `"Your order has shipped"`. */
    title?: string;
    /** The text. For example `"It will be with you on Tuesday."`. */
    body?: string;
    /** A picture to show. For example `"https://app.example.com/parcel.png"`. */
    imageUrl?: string;
    /** What a tap leads to. For example `"/orders/17"`. */
    clickAction?: string;
    /** The icon to show. For example `"parcel"`. */
    icon?: string;
    /** The sound to play. For example `"default"`. */
    sound?: string;
    /** The number on the application's icon. For example `1`. */
    badge?: number;
    /** Fields for the application. For example `{"orderId":"17"}`. */
    data?: { [name: string]: unknown };
  };
};

export type DeviceRequest = {
  /** What kind of device it is. For example `"ios"`. */ platform: "ios" | "android" | "web";
  /** Of the platform `web`: what the browser gave. */
  subscription?: {
    /** Where the browser's service takes pushes. For example `"https://push.example.com/send/1"`. */ endpoint: string;
    /** The browser's keys. */
    keys: {
      /**
       * The browser's public key. For example
       * `"BLc4xRzKlKORKWlbdgFaBrrPK3ydWAHo4M0gs0i1oEKgPpWC5cW8OCzVrOQRv-1npXRWk8udnW3oYhIO4475rds"`.
       */
      p256dh: string;
      /** The browser's secret. For example `"5I2Bu2oKdyy9CwL8QVF0NQ"`. */
      auth: string;
    };
    /** As browsers write it; not looked at. For example `null`. */
    expirationTime?: unknown;
  };
};

export type Device = {
  /** The device's token. For example `"fcm-token-1"`. */ token: string;
  /** What kind of device it is. For example `"ios"`. */
  platform: "ios" | "android" | "web";
  /** Whether it is pushed to. */
  active: boolean;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was last changed. For example `"2027-01-01T09:00:00.000Z"`. */
  updatedAt: string;
  /** When its service said that it is gone. For example `"2027-01-01T09:00:00.000Z"`. */
  deadAt?: string;
  /** What its service said. For example `"UNREGISTERED"`. */
  deadReason?: string;
};

export type Suppression = {
  /** An e-mail address or phone number. For example `"ana@example.com"`. */ address: string;
  /** What put it there. For example `"bounce"`. */
  why: "bounce" | "complaint" | "manual";
  /** Why, in words. For example `"moving to another provider"`. */
  reason?: string;
  /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
};

export type ProviderState = {
  /** The provider's name. For example `"smtp"`. */ name: string;
  /** What kind of provider it is. For example `"smtp"`. */
  type: string;
  /** The channels it carries. For example `["email"]`. */
  channels: Array<Channel>;
  /** The channels whose route it stands in. For example `["email"]`. */
  routes: Array<Channel>;
  /** Whether it is the tenant's own account. */
  own: boolean;
  /** What it can do. For example `{"batch":false,"receipts":true}`. */
  capabilities: { [name: string]: unknown };
  /** Whether it can be reached with its credentials. */
  health?: {
    /** Whether it is well. */ healthy: boolean;
    /** What else there is to say of it. For example `"nothing to add"`. */
    detail: string;
  };
  /** Whether sends are kept from it for now. */
  breaker: {
    /** `open`: nothing is sent; `half-open`: a few try. For example `"closed"`. */
    state: "closed" | "half-open" | "open";
    /** For how long it stays open, in milliseconds. For example `30000`. */
    openMs?: number;
    /** For how long its server asked us to wait, in milliseconds. For example `5000`. */
    pausedMs?: number;
    /** Why, in words. For example `"moving to another provider"`. */
    reason?: string;
  };
  /** Whether it is paused. */
  paused?: Pause;
  /** Of the tenant's own URLs, those whose servers are in trouble. */
  receivers?: Array<{
    /** The receiver's server. For example `"https://app.example.com"`. */ origin: string;
    /** `open`: nothing is sent; `half-open`: a few try. For example `"closed"`. */
    state: "closed" | "half-open" | "open";
    /** For how long it stays open, in milliseconds. For example `30000`. */
    openMs?: number;
    /** For how long its server asked us to wait, in milliseconds. For example `5000`. */
    pausedMs?: number;
    /** Why, in words. For example `"moving to another provider"`. */
    reason?: string;
  }>;
  /** What may be sent, and what room there is. */
  limits: {
    /** Of the account: what it may send. */ account: Array<LimitUse>;
    /** What one recipient may be sent. */
    recipient: Array<LimitUse>;
  };
  /** What the tenant sent by it in the last 30 days, and what that cost. */
  spend: {
    /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */ since: string;
    /** How many were sent. For example `1200`. */
    sent: number;
    /** What it cost, by estimate, in US dollars. For example `0.0008`. */
    cost: number;
  };
};

export type LimitUse = {
  /** The period. For example `"second"`. */ per: "second" | "minute" | "hour" | "day";
  /** How many in a period. For example `100`. */
  most: number;
  /** How many at once. For example `10`. */
  burst: number;
  /** How many could go at once, now. For example `10`. */
  room?: number;
  /** How long it has to wait, in milliseconds. For example `1200`. */
  waitMs?: number;
};

export type Costs = {
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */ since: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until: string;
  /** What all of it cost, in US dollars. For example `0.96`. */
  total: number;
  /** What was found. */
  data: Array<{
    /** The provider, channel or value they are of. For example `"smtp"`. */ key: string;
    /** How many were sent. For example `1200`. */
    sent: number;
    /** What it cost, by estimate, in US dollars. For example `0.0008`. */
    cost: number;
  }>;
  /** By a field: how many notifications were looked at. For example `1200`. */
  looked?: number;
  /**
   * How far back was looked, where there was more than could be looked at. For example
   * `"2027-01-01T09:00:00.000Z"`.
   */
  searchedUntil?: string;
  /** Where to go on; null at the end. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  nextCursor: string | null;
};

export type SourceState = {
  /** The source's name. For example `"orders"`. */ name: string;
  /** What kind of broker it is. For example `"kafka"`. */
  type: string;
  /** Whether the configuration of the process that answered has it. */
  configured: boolean;
  /** How it is. For example `"running"`. */
  state: "running" | "paused" | "failing" | "idle";
  /** Since when it is paused or failing. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Why, in words. For example `"moving to another provider"`. */
  reason?: string;
  /** Who paused it. For example `"key:ck_5f3a"`. */
  pausedBy?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
  /** How many it has carried. For example `120000`. */
  carried: number;
  /** How many were refused and passed over. For example `3`. */
  refused: number;
  /** When it last moved on. For example `"2027-01-01T09:00:00.000Z"`. */
  movedAt?: string;
  /** How far it is behind. */
  lag: {
    /** How many messages wait, where that is known. For example `12`. */ messages?: number;
  };
  /** How far each partition has come. */
  offsets: Array<{
    /** The topic. For example `"orders"`. */ topic: string;
    /** The partition. For example `0`. */
    partition: number;
    /** The next message to read. For example `4711`. */
    next: number;
    /** How many wait behind it. For example `12`. */
    waiting?: number;
    /** When it last moved on. For example `"2027-01-01T09:00:00.000Z"`. */
    movedAt: string;
  }>;
};

export type SinkState = {
  /** The sink's name. For example `"warehouse"`. */ name: string;
  /** What kind of broker it is. For example `"clickhouse"`. */
  type: string;
  /** Whether the configuration of the process that answered has it. */
  configured: boolean;
  /** How it is. For example `"running"`. */
  state: "running" | "paused" | "failing" | "idle";
  /** Since when it is paused or failing. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Why, in words. For example `"moving to another provider"`. */
  reason?: string;
  /** Who paused it. For example `"key:ck_5f3a"`. */
  pausedBy?: string;
  /** Why not, in words. For example `"450 mailbox busy"`. */
  error?: string;
  /** How many it has carried. For example `120000`. */
  carried: number;
  /** How many were refused and passed over. For example `3`. */
  refused: number;
  /** When it last moved on. For example `"2027-01-01T09:00:00.000Z"`. */
  movedAt?: string;
  /** How far it is behind. */
  lag: {
    /** How long ago that happened which it is told next, in milliseconds. For example `250`. */ ms: number;
    /** How many facts it has not been told, up to 10,000. For example `3`. */
    facts: number;
  };
};

export type SinkReplay = {
  /** Where to go on. For example `"7:1000:0:4"`. */ next: string;
  /** Whether it was sent back; false where it had not come that far. */
  moved: boolean;
};

export type Refusal = {
  /** Its number. For example `"17"`. */ id: string;
  /** What kind of thing it is. For example `"source"`. */
  kind: "source" | "sink";
  /** The source or sink. For example `"orders"`. */
  name: string;
  /** Whose it is. For example `"default"`. */
  tenant?: string;
  /** Where it came from. For example `"orders/0/4711"`. */
  place: string;
  /** What kind of fault it is. For example `"VALIDATION_FAILED"`. */
  code: string;
  /** Every fault. */
  errors: Array<{
    /** Where, as a JSON Pointer. For example `"/channel"`. */ path: string;
    /** What is wrong there. For example `"must be one of email, push, sms"`. */
    message: string;
  }>;
  /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
};

export type KeptMessage = {
  /** The message's id; later ones are larger. For example `"42"`. */ id: string;
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  notificationId: string;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** Everybody it would have gone to, in lower case. For example `["ana@example.com"]`. */
  to: Array<string>;
  /** As it would have been sent. */
  message: Message;
  /** When it was kept. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
};

export type WholeMessage = {
  /** The message's id; later ones are larger. For example `"42"`. */ id: string;
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  notificationId: string;
  /** The way it takes. For example `"email"`. */
  channel: Channel;
  /** Everybody it would have gone to, in lower case. For example `["ana@example.com"]`. */
  to: Array<string>;
  /** As it would have been sent. */
  message: Message;
  /** When it was kept. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
  /** As the channel's own provider would have sent it; not of what an older release kept. */
  wire?: {
    /**
     * Whose way of writing it is: smtp, twilio, fcm, apns, webpush, slack, webhook, inbox, console or file. For
     * example `"smtp"`.
     */
    as: string;
    /** Its media type. For example `"message/rfc822"`. */
    type: string;
    /** All of it. For example `"From: bell@example.com\r\nTo: ana@example.com\r\n"`. */
    body: string;
    /** The attempt at its notification that it was, 1 for the first. For example `1`. */
    attempt: number;
    /** Headers of the request, its signature included. For example `{"webhook-timestamp":"1798794000"}`. */
    headers?: { [name: string]: unknown };
    /** Where it would have been posted. For example `"https://app.example.com/hook"`. */
    url?: string;
    /** Of a mail: who gets it, and what it says in plain text. */
    mail?: {
      /** Who it is from. For example `"Example <bell@example.com>"`. */ from: string;
      /** Everybody it would have gone to, in lower case. For example `["ana@example.com"]`. */
      to: Array<string>;
      /** Who gets a copy. For example `["ben@example.com"]`. */
      cc: Array<string>;
      /** Who gets a copy that nobody sees. For example `["log@example.com"]`. */
      bcc: Array<string>;
      /** Where answers go. For example `"help@example.com"`. */
      replyTo?: string;
      /** Its subject. For example `"Your order has shipped"`. */
      subject: string;
      /** Its text. For example `"Your order has shipped."`. */
      text: string;
      /** Headers besides the usual ones. For example `{"X-Order":"4711"}`. */
      headers: { [name: string]: unknown };
      /** Its name for other mails. For example `"<018f2c1d-7000-7000-8000-000000000000@example.com>"`. */
      messageId: string;
    };
    /** Of a text message: what carriers make of it. */
    sms?: {
      /** In which letters it goes. For example `"GSM-7"`. */ encoding: string;
      /** How many messages it becomes. For example `1`. */
      segments: number;
      /** How long it is. For example `23`. */
      characters: number;
    };
  };
};

export type DevClock = {
  /** What the clock shows. For example `"2027-01-01T09:00:00.000Z"`. */ now: string;
  /** The true time. For example `"2027-01-01T09:00:00.000Z"`. */
  trueNow: string;
  /** How far the clock was moved, in milliseconds. For example `2592000000`. */
  movedMs: number;
};

export type FaultRequest = {
  /** Of a provider of type `dev`; one of `provider` and `channel` is needed. For example `"dev"`. */ provider?: string;
  /** Of this channel. For example `"email"`. */
  channel?: Channel;
  /** How sends fail. For example `"503"`. */
  fault: "429" | "503" | "refused" | "dead-recipient" | "hang" | "lost-answer";
  /** How many sends fail. For example `3`. */
  next?: number;
  /** After how long `dev` asks to come back, with 429 and 503. For example `30`. */
  retryAfterSeconds?: number;
};

export type InjectedFault = {
  /** Its number. For example `"7"`. */ id: string;
  /** Of this provider. For example `"dev"`. */
  provider?: string;
  /** Of this channel. For example `"email"`. */
  channel?: Channel;
  /** How sends fail. For example `"503"`. */
  fault: "429" | "503" | "refused" | "dead-recipient" | "hang" | "lost-answer";
  /** How many sends it is for. For example `3`. */
  next: number;
  /** For how many it still is. For example `2`. */
  left: number;
  /** After how long `dev` asks to come back, with 429 and 503. For example `30`. */
  retryAfterSeconds?: number;
  /** Since when. For example `"2027-01-01T09:00:00.000Z"`. */
  at: string;
};

export type InboxItem = {
  /** Its id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ id: string;
  /** What kind of item it is. For example `"orders"`. */
  category: string | null;
  /** The title. For example `"Your order has shipped"`. */
  title: string | null;
  /** The text. For example `"It will be with you on Tuesday."`. */
  body: string | null;
  /** Fields for the application. For example `{"orderId":"17"}`. */
  data: { [name: string]: unknown } | null;
  /** What a click leads to. For example `"/orders/17"`. */
  link: string | null;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it was read; null if it was not. For example `"2027-01-01T09:00:00.000Z"`. */
  readAt: string | null;
  /** When it was put away; null if it was not. For example `"2027-01-01T09:00:00.000Z"`. */
  archivedAt: string | null;
};

export type InboxPage = {
  /** What was found. */ data: Array<InboxItem>;
  /** How many are unread. For example `3`. */
  unread: number;
  /** Where the inbox stood: a stream after it misses nothing. For example `"1:42"`. */
  position: string;
  /** Where to go on; null at the end. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  nextCursor: string | null;
};

export type Marked = {
  /** How many it changed. For example `2`. */ marked: number;
  /** How many are unread. For example `3`. */
  unread: number;
};

export type SubscriberToken = {
  /** What the browser sends as `Authorization: Bearer`. For example `"cst_eyJ1IjoidV8xNyJ9.c2lnbmF0dXJl"`. */
  token: string;
  /** The sender's name for a person. For example `"u_17"`. */
  userId: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt: string;
};

export type QueueDepth = {
  /** What keeps the queue. For example `"postgres"`. */ engine: "postgres" | "redis" | "sqs";
  /** Where ready work waits. */
  engines: Array<{
    /** The engine. For example `"postgres"`. */ name: "postgres" | "redis" | "sqs";
    /** How many wait there. For example `40`. */
    waiting: number;
    /** Whether something of it was counted up to a bound only. */
    isEstimate: boolean;
    /** Whether what is accepted goes there. */
    current: boolean;
  }>;
  /** The move from one engine to another that is under way, or the last one. */
  migration?: QueueMove;
  /** How many wait, by lane. */
  depth: {
    /** In the lane urgent. For example `0`. */ urgent: number;
    /** In the lane high. For example `2`. */
    high: number;
    /** In the lane normal. For example `40`. */
    normal: number;
    /** In the lane low. For example `7`. */
    low: number;
  };
  /** How many are being sent. For example `5`. */
  processing: number;
  /** How many wait for their time. For example `12`. */
  scheduled: number;
  /** How long the oldest has waited, in milliseconds. For example `180`. */
  oldestAgeMs: number;
  /** Whether something of it was counted up to a bound only. */
  isEstimate: boolean;
  /** What is paused. */
  paused: Array<Pause>;
  /** What waits and no living worker takes. */
  untaken: Array<Untaken>;
};

export type QueueMove = {
  /** Where it is moved away from. For example `"postgres"`. */ from: "postgres" | "redis" | "sqs";
  /** Where it is moved to. For example `"postgres"`. */
  to: "postgres" | "redis" | "sqs";
  /** Whether what is accepted goes to the target at once, or when the source is empty. For example `"drain-first"`. */
  strategy: "drain-first" | "live-forward";
  /** How far it is. For example `"moving"`. */
  state: "moving" | "aborting" | "done" | "aborted";
  /** What waited there when it began. For example `40`. */
  waiting: number;
  /** How many were taken over without a worker. For example `25`. */
  moved: number;
  /** What still waits where it is moved away from. For example `2`. */
  left: number;
  /** When it began. For example `"2027-01-01T09:00:00.000Z"`. */
  startedAt: string;
  /** When it ended. For example `"2027-01-01T09:00:00.000Z"`. */
  endedAt?: string;
  /** Whether everything has ended or waits in one place, looked at once it has ended. */
  audit?: {
    /** How far it is. For example `"looking"`. */ state: "looking" | "balanced" | "unbalanced";
    /** False where not everything could be looked at. */
    isWhole: boolean;
    /** What each engine was given. */
    engines: Array<{
      /** The engine. For example `"redis"`. */ engine: "postgres" | "redis" | "sqs";
      /** How many it was given. For example `1220`. */
      accepted: number;
      /** How many of those have ended. For example `1180`. */
      ended: number;
      /** How many of those wait, wherever that is now. For example `40`. */
      waiting: number;
    }>;
    /** How many are nowhere, in two places, or have ended and yet wait. For example `0`. */
    amiss: number;
    /** Some that are amiss. For example `["01a1de40-9f99-76c9-9e2a-360eb4bcc864"]`. */
    examples: Array<string>;
    /** When it was done. For example `"2027-01-01T09:00:00.000Z"`. */
    at?: string;
  };
};

export type QueueMoveRequest = {
  /** Where it is to be moved. For example `"postgres"`. */ to: "postgres" | "redis" | "sqs";
  /** Whether what is accepted goes to the target at once, or when the source is empty. For example `"drain-first"`. */
  strategy?: "drain-first" | "live-forward";
};

export type Untaken = {
  /** The lane it waits in. For example `"urgent"`. */ priority: Priority;
  /** The way it takes. For example `"email"`. */
  channel?: Channel;
  /** The place it is to be sent from: only workers there take it. For example `"eu-west"`. */
  region?: string;
  /** Whose it is. For example `"default"`. */
  tenant: string;
  /** How many. For example `5`. */
  count: number;
  /** How long the oldest has waited, in milliseconds. For example `180`. */
  oldestAgeMs: number;
};

export type Ledger = {
  /** How many were accepted. For example `1220`. */ accepted: number;
  /** How many wait or are being sent. For example `12`. */
  waiting: number;
  /** How many were sent. For example `1200`. */
  sent: number;
  /** How many are known to have arrived. For example `900`. */
  delivered: number;
  /** How many failed for good. For example `3`. */
  failed: number;
  /** How many were cancelled. For example `2`. */
  cancelled: number;
  /** How many were too late. For example `1`. */
  expired: number;
  /** How many were for suppressed addresses. For example `2`. */
  suppressed: number;
  /** Of how many nobody knows. For example `0`. */
  ambiguous: number;
  /** Whether all of it is accounted for. */
  balanced: boolean;
  /** Whether something of it was counted up to a bound only. */
  isEstimate: boolean;
};

export type Statistics = {
  /** From when on it was counted. For example `"2027-01-01T09:00:00.000Z"`. */ since: string;
  /** Until when. For example `"2027-01-01T09:00:00.000Z"`. */
  until: string;
  /** How long each line's time is; without it, one line for all of it. For example `"PT1M"`. */
  step?: "PT1M" | "PT5M" | "PT15M" | "PT1H" | "PT6H" | "P1D";
  /** False while what was there before an upgrade is still being counted. */
  isComplete: boolean;
  /** The lines. */
  data: Array<StatisticsLine>;
};

export type StatisticsLine = {
  /** When its step begins. For example `"2027-01-01T09:00:00.000Z"`. */ at?: string;
  /** Whose it is, where it was grouped by that. For example `"default"`. */
  tenant?: string | null;
  /** The channel, where it was grouped by that. For example `"email"`. */
  channel?: Channel | null;
  /** The priority, where it was grouped by that. For example `"normal"`. */
  priority?: Priority | null;
  /** The provider, where it was grouped by that; null of what needed none. For example `"ses"`. */
  provider?: string | null;
  /** What it led to, where it was grouped by that; null of acceptances. For example `"sent"`. */
  status?: Status | null;
  /** What attempts came to, where it was grouped by that; null of what was no attempt. For example `"accepted"`. */
  outcome?: string | null;
  /** How many were accepted. For example `1220`. */
  accepted: number;
  /** Attempts that were made. For example `1250`. */
  attempts: number;
  /** How many were sent. For example `1200`. */
  sent: number;
  /** How many arrived, as was reported. For example `900`. */
  delivered: number;
  /** How many failed for good. For example `3`. */
  failed: number;
  /** How many were too late. For example `1`. */
  expired: number;
  /** How many were for suppressed addresses. For example `2`. */
  suppressed: number;
  /** Of how many nobody knows. For example `0`. */
  ambiguous: number;
  /** How many were cancelled. For example `2`. */
  cancelled: number;
  /** Attempts after which another follows. For example `44`. */
  retrying: number;
  /** How many a guard put off, for the first time. For example `7`. */
  postponed: number;
  /** How many were sent again by a person or a plan. For example `3`. */
  retried: number;
  /** Of attempts that were the last, the part that was sent; null where there was none. For example `0.9975`. */
  success: number | null;
  /** What it cost, in US dollars, by estimate. For example `0.12`. */
  cost: number;
  /** How long providers took, in milliseconds; null where none was asked. */
  latencyMs: {
    /** Half took less. For example `38.5`. */ p50: number;
    /** Nine of ten took less. For example `120`. */
    p90: number;
    /** 99 of 100 took less. For example `410.5`. */
    p99: number;
  } | null;
};

export type Worker = {
  /** The worker's name. For example `"host-1:4021"`. */ name: string;
  /** Whether it has been heard of lately. */
  alive: boolean;
  /** When it began. For example `"2027-01-01T09:00:00.000Z"`. */
  startedAt: string;
  /** When it was last heard of. For example `"2027-01-01T09:00:00.000Z"`. */
  seenAt: string;
  /** When it stopped. For example `"2027-01-01T09:00:00.000Z"`. */
  stoppedAt?: string;
  /** How many it has in hand. For example `12`. */
  held?: number;
  /** How many it is sending. For example `5`. */
  sending?: number;
  /** How many it has delivered. For example `9000`. */
  delivered?: number;
  /** The engines that ready work can wait in. For example `["redis"]`. */
  engines: Array<"redis" | "sqs">;
  /** What it is restricted to. */
  takes: {
    /** The lanes it takes from. For example `["urgent"]`. */ lanes?: Array<Priority>;
    /** The channels it carries. For example `["email"]`. */
    channels?: Array<Channel>;
    /** The tenants it works for. For example `["acme"]`. */
    tenants?: Array<string>;
    /** The regions it is in. For example `["eu-west"]`. */
    regions?: Array<string>;
  };
};

export type House = {
  /** The roles that one process has at a time, and who has them. */
  leaders: Array<{
    /** The role. For example `"keeper"`. */ name: string;
    /** The process that has it, or had it last. For example `"host-1:4021"`. */
    holder: string;
    /** Whether it has it now. */
    leads: boolean;
    /** Until when, unless it goes on. For example `"2027-01-01T09:00:00.000Z"`. */
    until: string;
  }>;
  /** Of the transactions that are open in the database, the one that has been for longest. */
  oldestTransaction?: {
    /** Whose it is. For example `"process 4711 of carillon (carillon)"`. */ who: string;
    /** What it does. For example `"idle in transaction"`. */
    state: string;
    /** For how long it has been open, in milliseconds. For example `12`. */
    ageMs: number;
  };
  /** The tables of the queue. */
  tables: Array<{
    /** The table. For example `"ready"`. */ name: string;
    /** How many rows it has, by estimate. For example `40`. */
    rows: number;
    /** How many dead ones are still in it, by estimate. For example `120`. */
    deadRows: number;
    /** When they were last taken away. For example `"2027-01-01T09:00:00.000Z"`. */
    vacuumedAt?: string;
  }>;
};

export type PauseRequest = {
  /** Why, in words. For example `"moving to another provider"`. */ reason: string;
  /** When it ends by itself. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
};

export type Pause = {
  /** What kind of thing it is. For example `"lane"`. */ kind: "lane" | "channel" | "tenant" | "provider";
  /** What is paused. For example `"email"`. */
  name: string;
  /** Of a provider: the tenant whose own account it is. For example `"acme"`. */
  tenant?: string;
  /** Why, in words. For example `"moving to another provider"`. */
  reason: string;
  /** Since when it is paused. For example `"2027-01-01T09:00:00.000Z"`. */
  pausedAt: string;
  /** Who paused it. For example `"key:ck_5f3a"`. */
  pausedBy?: string;
  /** When it ends by itself. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
};

export type Tenant = {
  /** The tenant's name. For example `"acme"`. */ name: string;
  /** Its turns within a lane, beside those of the others. For example `3`. */
  weight: number;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
};

export type UserDeletion = {
  /** The sender's name for a person. For example `"u_17"`. */ userId: string;
  /** Whether it goes on. For example `"running"`. */
  state: "running" | "done";
  /** When it was asked for. For example `"2027-01-01T09:00:00.000Z"`. */
  requestedAt: string;
  /** When it was done. For example `"2027-01-01T09:00:00.000Z"`. */
  finishedAt?: string;
  /** How many were blanked so far. For example `31`. */
  notifications: number;
};

export type KnownOfUser = {
  /** What it is: a notification, a device and so on. For example `"notification"`. */ kind: string;
  [name: string]: unknown;
};

export type AuditLine = {
  /** When it happened. For example `"2027-01-01T09:00:00.000Z"`. */ at: string;
  /** Who did it. */
  actor: {
    /** What kind of thing it is. For example `"key"`. */
    kind: "key" | "user" | "provider" | "process" | "command-line";
    /** Its id. For example `"ck_5f3a"`. */
    id: string;
    /** Its name. For example `"ci"`. */
    name?: string;
    /** By which session, if by one. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
    session?: string;
  };
  /** What was done. For example `"key.create"`. */
  action:
    | "key.create"
    | "key.revoke"
    | "session.begin"
    | "session.end"
    | "tenant.create"
    | "tenant.weigh"
    | "channel.pause"
    | "channel.resume"
    | "provider.pause"
    | "provider.resume"
    | "tenant.pause"
    | "tenant.resume"
    | "lane.resume"
    | "account.keep"
    | "account.forget"
    | "template.keep"
    | "template.activate"
    | "template.delete"
    | "schedule.keep"
    | "schedule.pause"
    | "schedule.resume"
    | "schedule.delete"
    | "reminder.keep"
    | "reminder.delete"
    | "scope.keep"
    | "scope.delete"
    | "notification.cancel"
    | "notification.reschedule"
    | "notification.retry"
    | "dead-letters.requeue"
    | "plan.create"
    | "plan.apply"
    | "plan.continue"
    | "plan.abort"
    | "plan.finish"
    | "endpoint.create"
    | "endpoint.change"
    | "endpoint.pause"
    | "endpoint.resume"
    | "endpoint.rotate"
    | "endpoint.delete"
    | "endpoint.disable"
    | "endpoint.replay"
    | "callback-dead-letters.requeue"
    | "source.pause"
    | "source.resume"
    | "sink.pause"
    | "sink.resume"
    | "sink.replay"
    | "sink.forget"
    | "queue.move"
    | "queue.move-abort"
    | "queue.audit"
    | "week.drop"
    | "audit.drop"
    | "archive.write"
    | "archive.restore"
    | "user.delete"
    | "user.deleted"
    | "user.export"
    | "suppression.keep"
    | "suppression.lift"
    | "dev-messages.clear"
    | "dev-message.delete"
    | "clock.move"
    | "clock.reset"
    | "faults.inject"
    | "faults.clear";
  /** What it was done to: `kind:name`. For example `"channel:email"`. */
  object: string;
  /** Whose it is. For example `"default"`. */
  tenant: string;
  /** The fields that changed. */
  change: {
    /** As they were. For example `{"weight":1}`. */ before?: { [name: string]: unknown };
    /** As they are. For example `{"weight":3}`. */
    after?: { [name: string]: unknown };
  };
  /** From which address. For example `"10.0.0.17"`. */
  address?: string;
  /** By which request. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  requestId?: string;
};

export type KeyRequest = {
  /** What it is called. For example `"ci"`. */ name: string;
  /** What it may do. For example `["send"]`. */
  scopes: Array<"send" | "read" | "admin">;
  /** Whose it is. For example `"default"`. */
  tenant?: string;
  /** When it ceases to work. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
};

export type Key = {
  /** The key's id, the middle of it. For example `"5f3a"`. */ id: string;
  /** Whose it is. For example `"default"`. */
  tenant: string;
  /** What it is called. For example `"ci"`. */
  name: string;
  /** What it may do. For example `["send"]`. */
  scopes: Array<"send" | "read" | "admin">;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it ceases to work. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
  /** When it was revoked. For example `"2027-01-01T09:00:00.000Z"`. */
  revokedAt?: string;
  /** When it was last used. For example `"2027-01-01T09:00:00.000Z"`. */
  lastUsedAt?: string;
};

export type NewKey = {
  /** The key's id, the middle of it. For example `"5f3a"`. */ id: string;
  /** Whose it is. For example `"default"`. */
  tenant: string;
  /** What it is called. For example `"ci"`. */
  name: string;
  /** What it may do. For example `["send"]`. */
  scopes: Array<"send" | "read" | "admin">;
  /** When it was made. For example `"2027-01-01T09:00:00.000Z"`. */
  createdAt: string;
  /** When it ceases to work. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
  /** When it was revoked. For example `"2027-01-01T09:00:00.000Z"`. */
  revokedAt?: string;
  /** When it was last used. For example `"2027-01-01T09:00:00.000Z"`. */
  lastUsedAt?: string;
  /** The key; shown only this once. For example `"ck_5f3a_c2VjcmV0"`. */
  key: string;
};

export type Who = {
  /** The key that asks, or that the session stands for. */
  key: {
    /** The key's id, the middle of it. For example `"5f3a"`. */ id: string;
    /** What it is called. For example `"ci"`. */
    name: string;
  };
  /** Whose it is. For example `"default"`. */
  tenant: string;
  /** What it may do. For example `["send"]`. */
  scopes: Array<"send" | "read" | "admin">;
  /** The session by which it was asked, if it was by one. */
  session?: {
    /** The session's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ id: string;
    /** When it ends. For example `"2027-01-01T09:00:00.000Z"`. */
    expiresAt: string;
  };
};

export type Health = {
  /** `healthy`, `degraded` or `unhealthy`. For example `"healthy"`. */ status: string;
  /** Each part. */
  checks: Array<{
    /** The part. For example `"database"`. */ name: string;
    /** Whether it is well. */
    healthy: boolean;
    /** Whether it serves, and somebody should look. */
    degraded?: boolean;
    /** How long it took, in milliseconds. For example `84`. */
    latencyMs: number;
    /** How it is, in words. For example `"answers"`. */
    detail: string;
  }>;
  /** For how long the process has run, in seconds. For example `86400.5`. */
  uptime: number;
};

export type Readiness = {
  /** Whether requests should be sent here. */ ready: boolean;
  /** Why, in words. For example `"moving to another provider"`. */
  reason?: string;
};

export type Problem = {
  /** Where the problem is explained. For example `"/docs#VALIDATION_FAILED"`. */ type: string;
  /** What the code means. For example `"The request is not valid"`. */
  title: string;
  /** The HTTP status. For example `422`. */
  status: number;
  /** Which problem; this never changes. For example `"VALIDATION_FAILED"`. */
  code: string;
  /** What was wrong with this request. For example `"/channel must be one of email, push, sms"`. */
  detail: string;
  /** Every fault of an invalid request. */
  errors?: Array<{
    /** Where, as a JSON Pointer. For example `"/channel"`. */ path: string;
    /** What is wrong there. For example `"must be one of email, push, sms"`. */
    message: string;
  }>;
  /** Of a reset: where to go on. For example `"7:1000:0:0"`. */
  next?: string;
  /** The id of the request, as the log has it. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  requestId?: string;
};

/** As it would have been sent, with its template filled in; for push with the device. */
export type Message = NotificationRequest & { device?: { token: string; platform: "ios" | "android" | "web" } };

/** What a request may say whatever its channel. */
export type RequestFields = {
  /** The lane it waits in. For example `"urgent"`. */ priority?: Priority;
  /** The place it is to be sent from: only workers there take it. For example `"eu-west"`. */
  region?: string;
  /** Not before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  scheduledFor?: string;
  /** Never after this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  expiresAt?: string;
  /**
   * The sender's name for the request: the same key and body make no second notification. For example
   * `"order-17-shipped"`.
   */
  idempotencyKey?: string;
  /** How it is tried again, in place of the channel's own policy. */
  retryPolicy?: RetryPolicy;
  /**
   * What a lost answer of the provider means: send again (twice at most), hold, or wait for its report. For
   * example `"resend"`.
   */
  onAmbiguous?: "resend" | "hold" | "reconcile";
  /** The sender's own fields: lists can be filtered and costs grouped by them. For example `{"orderId":"17"}`. */
  metadata?: { [name: string]: unknown };
  /**
   * The trace it belongs to, as W3C Trace Context has it. For example
   * `"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`.
   */
  traceparent?: string;
  /** What tracing tools carry along. For example `"vendor=1"`. */
  tracestate?: string;
  /** Where the sender is told what becomes of it. For example `"https://app.example.com/callbacks"`. */
  callbackUrl?: string;
  /** How long a callback is tried. For example `"best_effort"`. */
  callbackPolicy?: "best_effort" | "aggressive" | "persistent";
  /** What the sender is told of; all unless it is said. For example `["accepted"]`. */
  callbackEvents?: Array<FactType>;
};

export type EmailRequest = RequestFields & {
  /** The way it takes. */
  channel: "email";
  /** Who gets it: what the channel needs. */
  recipient: Has<Recipient, "email">;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "subject" | "templateId"> & Some<Content, "textBody" | "htmlBody" | "templateId">;
};

export type PushRequest = RequestFields & {
  /** The way it takes. */
  channel: "push";
  /** Who gets it: what the channel needs. */
  recipient: Some<Recipient, "deviceTokens" | "userId">;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "title" | "body" | "templateId" | "data">;
};

export type SmsRequest = RequestFields & {
  /** The way it takes. */
  channel: "sms";
  /** Who gets it: what the channel needs. */
  recipient: Has<Recipient, "phone">;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "body" | "templateId">;
};

export type SlackRequest = RequestFields & {
  /** The way it takes. */
  channel: "slack";
  /** Who gets it: what the channel needs. */
  recipient: Some<Recipient, "slackChannel" | "webhookUrl">;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "body" | "templateId">;
};

export type WebhookRequest = RequestFields & {
  /** The way it takes. */
  channel: "webhook";
  /** Who gets it: what the channel needs. */
  recipient: Has<Recipient, "webhookUrl">;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "body" | "data" | "title" | "templateId">;
};

export type InboxRequest = RequestFields & {
  /** The way it takes. */
  channel: "inbox";
  /** Who gets it: what the channel needs. */
  recipient: Has<Recipient, "userId">;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "title" | "body" | "templateId">;
};

export type ConsoleRequest = RequestFields & {
  /** The way it takes. */
  channel: "console";
  /** Who gets it: what the channel needs. */
  recipient?: Recipient;
  /** What it says: what the channel needs, or a template. */
  content: Content;
};

export type FileRequest = RequestFields & {
  /** The way it takes. */
  channel: "file";
  /** Who gets it: what the channel needs. */
  recipient?: Recipient;
  /** What it says: what the channel needs, or a template. */
  content: Content;
};

/** A message to one recipient: `channel` says what it needs. */
export type NotificationRequest =
  | EmailRequest
  | PushRequest
  | SmsRequest
  | SlackRequest
  | WebhookRequest
  | InboxRequest
  | ConsoleRequest
  | FileRequest;

/** What a notice may say whatever its channel. */
export type NoticeFields = {
  /** The lane it waits in. For example `"urgent"`. */ priority?: Priority;
  /** The place it is to be sent from: only workers there take it. For example `"eu-west"`. */
  region?: string;
  /** How it is tried again, in place of the channel's own policy. */
  retryPolicy?: RetryPolicy;
  /**
   * What a lost answer of the provider means: send again (twice at most), hold, or wait for its report. For
   * example `"resend"`.
   */
  onAmbiguous?: "resend" | "hold" | "reconcile";
  /** The sender's own fields: lists can be filtered and costs grouped by them. For example `{"orderId":"17"}`. */
  metadata?: { [name: string]: unknown };
  /** Where the sender is told what becomes of it. For example `"https://app.example.com/callbacks"`. */
  callbackUrl?: string;
  /** How long a callback is tried. For example `"best_effort"`. */
  callbackPolicy?: "best_effort" | "aggressive" | "persistent";
  /** What the sender is told of; all unless it is said. For example `["accepted"]`. */
  callbackEvents?: Array<FactType>;
};

export type EmailNotice = NoticeFields & {
  /** The way it takes. */
  channel: "email";
  /** Who gets it: what the channel needs. */
  recipient?: Has<Recipient, "email"> /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Has<Recipient, "email">>;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "subject" | "templateId"> & Some<Content, "textBody" | "htmlBody" | "templateId">;
};

export type PushNotice = NoticeFields & {
  /** The way it takes. */
  channel: "push";
  /** Who gets it: what the channel needs. */
  recipient?: Some<
    Recipient,
    "deviceTokens" | "userId"
  > /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Some<Recipient, "deviceTokens" | "userId">>;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "title" | "body" | "templateId" | "data">;
};

export type SmsNotice = NoticeFields & {
  /** The way it takes. */
  channel: "sms";
  /** Who gets it: what the channel needs. */
  recipient?: Has<Recipient, "phone"> /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Has<Recipient, "phone">>;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "body" | "templateId">;
};

export type SlackNotice = NoticeFields & {
  /** The way it takes. */
  channel: "slack";
  /** Who gets it: what the channel needs. */
  recipient?: Some<
    Recipient,
    "slackChannel" | "webhookUrl"
  > /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Some<Recipient, "slackChannel" | "webhookUrl">>;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "body" | "templateId">;
};

export type WebhookNotice = NoticeFields & {
  /** The way it takes. */
  channel: "webhook";
  /** Who gets it: what the channel needs. */
  recipient?: Has<Recipient, "webhookUrl"> /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Has<Recipient, "webhookUrl">>;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "body" | "data" | "title" | "templateId">;
};

export type InboxNotice = NoticeFields & {
  /** The way it takes. */
  channel: "inbox";
  /** Who gets it: what the channel needs. */
  recipient?: Has<Recipient, "userId"> /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Has<Recipient, "userId">>;
  /** What it says: what the channel needs, or a template. */
  content: Some<Content, "title" | "body" | "templateId">;
};

export type ConsoleNotice = NoticeFields & {
  /** The way it takes. */
  channel: "console";
  /** Who gets it: what the channel needs. */
  recipient?: Recipient /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Recipient>;
  /** What it says: what the channel needs, or a template. */
  content: Content;
};

export type FileNotice = NoticeFields & {
  /** The way it takes. */
  channel: "file";
  /** Who gets it: what the channel needs. */
  recipient?: Recipient /** Those who get it, one notification each, in place of `recipient`. */;
  recipients?: Array<Recipient>;
  /** What it says: what the channel needs, or a template. */
  content: Content;
};

/** A notification without a time of its own, for one recipient or several: `channel` says what it needs. */
export type Notice =
  | EmailNotice
  | PushNotice
  | SmsNotice
  | SlackNotice
  | WebhookNotice
  | InboxNotice
  | ConsoleNotice
  | FileNotice;

/** `reason` says why it could no longer be cancelled. */
export type Cancellation = { notificationId: string; cancelled: boolean; reason?: string };

export type ListQuery = {
  /** Where it stands. For example `"pending"`. */ status?: Status;
  /** The way it takes. For example `"email"`. */
  channel?: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority?: Priority;
  /** The sender's name for a person. For example `"u_17"`. */
  userId?: string;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** This notification alone. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  id?: string;
  /** An address, a number, a Slack channel or a URL. For example `"ana@example.com"`. */
  recipient?: string;
  /** The template to fill. For example `"welcome"`. */
  templateId?: string;
  /** Part of an attempt's error, in whatever case. For example `"450 mailbox busy"`. */
  error?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
  /** Fields of the metadata that are to be equal. */
  metadata?: { [name: string]: string };
};

export type EventsListQuery = {
  /** Where to go on after. For example `"7:1000:0:0"`. */ after?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Of these types, with commas between them. For example `"sent,failed"`. */
  types?: readonly FactType[];
  /** Of this notification alone. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  notification?: string;
  /** How many at most. For example `50`. */
  limit?: number;
};

export type SchedulesListQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type SchedulesNextQuery = {
  /** How many. For example `5`. */ count?: number;
};

export type SchedulesRunsQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"2027-01-01T09:00:00.000Z"`. */
  cursor?: string;
};

export type RemindersListQuery = {
  /** A name from which reminders inherit offsets. For example `"guild:1"`. */ scope?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type RemindersListScopesQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"guild:1"`. */
  cursor?: string;
};

export type EndpointsDeliveriesQuery = {
  /** Where it stands. For example `"pending"`. */ status?: Status;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type CallbackDeadLettersListQuery = {
  /** Of this endpoint alone. For example `"requests"`. */ endpoint?: string;
  /** Of this type alone. For example `"notification.sent"`. */
  type?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type DeadLettersListQuery = {
  /** The way it takes. For example `"email"`. */ channel?: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority?: Priority;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** The sender's name for a person. For example `"u_17"`. */
  userId?: string;
  /** The template to fill. For example `"welcome"`. */
  templateId?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Part of the error, in whatever case. For example `"450 mailbox busy"`. */
  error?: string;
  /** As `GET /v1/dead-letters/groups` names it. For example `"mailbox busy"`. */
  cause?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type DeadLettersGroupsQuery = {
  /** The way it takes. For example `"email"`. */ channel?: Channel;
  /** The lane it waits in. For example `"urgent"`. */
  priority?: Priority;
  /** The provider that carried it. For example `"smtp"`. */
  provider?: string;
  /** The sender's name for a person. For example `"u_17"`. */
  userId?: string;
  /** The template to fill. For example `"welcome"`. */
  templateId?: string;
  /** What it came to. For example `"unavailable"`. */
  outcome?: string;
  /** Part of the error, in whatever case. For example `"450 mailbox busy"`. */
  error?: string;
  /** As `GET /v1/dead-letters/groups` names it. For example `"mailbox busy"`. */
  cause?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type PlansListQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type TemplatesListQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type TemplatesGetQuery = {
  /** Which version. For example `3`. */ version?: number;
};

export type TemplatesVersionsQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `3`. */
  cursor?: number;
};

export type SuppressionsListQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type RefusalsListQuery = {
  /** What kind of thing it is. For example `"source"`. */ kind?: "source" | "sink";
  /** The source or sink. For example `"orders"`. */
  name?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"17"`. */
  cursor?: string;
};

export type ReportQuery = {
  /** Whose it is. For example `"default"`. */ tenant?: string;
};

export type CostsQuery = {
  /** What costs are grouped by: provider, channel or metadata.<key>. For example `"provider"`. */ by?: string;
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type DevMessagesListQuery = {
  /** The way it takes. For example `"email"`. */ channel?: Channel;
  /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */
  notificationId?: string;
  /** Any of its recipients, whole. For example `"ana@example.com"`. */
  to?: string;
  /** Some of its words. For example `"order"`. */
  search?: string;
  /** Of a message that is known already: later ones only. For example `"41"`. */
  after?: string;
  /** For how long to wait until something fits, 60s at most. For example `"10s"`. */
  wait?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** `nextCursor` of the page before. For example `"41"`. */
  cursor?: string;
};

export type InboxListQuery = {
  /** What kind of item it is. For example `"orders"`. */ category?: string;
  /** Only what is unread. For example `"true"`. */
  unread?: "true" | "false";
  /** Only what was put away. For example `"true"`. */
  archived?: "true" | "false";
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"17"`. */
  cursor?: string;
};

export type StatisticsQuery = {
  /** From when on; without it, 60 steps or an hour before `until`. For example `"2027-01-01T09:00:00.000Z"`. */
  since?: string;
  /** Until when; without it, now. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** How long each line's time is; without it, one line for all of it. For example `"PT1M"`. */
  step?: "PT1M" | "PT5M" | "PT15M" | "PT1H" | "PT6H" | "P1D";
  /** What lines are grouped by, with commas. For example `"channel,provider"`. */
  by?: string;
};

export type TenantsListQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"acme"`. */
  cursor?: string;
};

export type UsersExportPageQuery = {
  /** How many at most. For example `50`. */ limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"AY8sHXAAcACAAAAAAAAAAA"`. */
  cursor?: string;
};

export type AuditQuery = {
  /** From this instant on. For example `"2027-01-01T09:00:00.000Z"`. */ since?: string;
  /** Before this instant. For example `"2027-01-01T09:00:00.000Z"`. */
  until?: string;
  /** A key's id or name. For example `"ci"`. */
  actor?: string;
  /** What was done. For example `"key.create"`. */
  action?:
    | "key.create"
    | "key.revoke"
    | "session.begin"
    | "session.end"
    | "tenant.create"
    | "tenant.weigh"
    | "channel.pause"
    | "channel.resume"
    | "provider.pause"
    | "provider.resume"
    | "tenant.pause"
    | "tenant.resume"
    | "lane.resume"
    | "account.keep"
    | "account.forget"
    | "template.keep"
    | "template.activate"
    | "template.delete"
    | "schedule.keep"
    | "schedule.pause"
    | "schedule.resume"
    | "schedule.delete"
    | "reminder.keep"
    | "reminder.delete"
    | "scope.keep"
    | "scope.delete"
    | "notification.cancel"
    | "notification.reschedule"
    | "notification.retry"
    | "dead-letters.requeue"
    | "plan.create"
    | "plan.apply"
    | "plan.continue"
    | "plan.abort"
    | "plan.finish"
    | "endpoint.create"
    | "endpoint.change"
    | "endpoint.pause"
    | "endpoint.resume"
    | "endpoint.rotate"
    | "endpoint.delete"
    | "endpoint.disable"
    | "endpoint.replay"
    | "callback-dead-letters.requeue"
    | "source.pause"
    | "source.resume"
    | "sink.pause"
    | "sink.resume"
    | "sink.replay"
    | "sink.forget"
    | "queue.move"
    | "queue.move-abort"
    | "queue.audit"
    | "week.drop"
    | "audit.drop"
    | "archive.write"
    | "archive.restore"
    | "user.delete"
    | "user.deleted"
    | "user.export"
    | "suppression.keep"
    | "suppression.lift"
    | "dev-messages.clear"
    | "dev-message.delete"
    | "clock.move"
    | "clock.reset"
    | "faults.inject"
    | "faults.clear";
  /** What it was done to: `kind:name`. For example `"channel:email"`. */
  object?: string;
  /** How many at most. For example `50`. */
  limit?: number;
  /** Where to go on: the `nextCursor` of the page before. For example `"17"`. */
  cursor?: string;
};

export type InboxFollowQuery = {
  /** Where to go on after: an id of the stream, or the `position` of a list. For example `"1:42"`. */ after?: string;
};

export type GeneratedClient = {
  /**
   * Send a notification. Answered after it is stored safely. Send it again with the same idempotency key if no
   * answer comes. A provider that is away is asked again as the channel's retries have it, over a day and more
   * where it is not our own; a `retryPolicy` stands in place of that as a whole, and what it leaves out is 5
   * attempts, a factor of 2 and 300000 ms at most. What may have been sent is sent again twice, unless
   * `onAmbiguous` says otherwise. Scope: `send`.
   */
  send(body: NotificationRequest, options?: CallOptions): Promise<Acceptance>;
  /**
   * List notifications, the newest first. Besides the named filters, `metadata.<key>=<value>` compares a field of
   * the metadata. Pages are stable while notifications arrive. A page may be short, of large requests or with a
   * rare filter: go on while there is a `nextCursor`. A page looks at 20,000 notifications at most; `looked` says
   * at how many, and `searchedUntil` back to when, if there is more. Scope: `read`.
   */
  list(query?: ListQuery, options?: CallOptions): Promise<NotificationPage>;
  /**
   * Send up to 1000 notifications. Each stands or falls by itself. `pending` counts those that were accepted but
   * are not yet due. Scope: `send`.
   */
  sendBatch(notifications: ReadonlyArray<NotificationRequest>, options?: CallOptions): Promise<BatchResult>;
  /** Read a notification with everything that happened to it. Scope: `read`. */
  get(id: string, options?: CallOptions): Promise<NotificationDetail>;
  /**
   * Reschedule a notification that has not been taken up yet. What is not named stays. A time in the past sends it
   * now; `expiresAt: null` takes its expiry away. Scope: `send`.
   */
  reschedule(id: string, body: Rescheduling, options?: CallOptions): Promise<Rescheduled>;
  events: {
    /**
     * What happened, in order. Ask again with `after` = `next`: nothing is missed and nothing comes twice. Without
     * `after` it begins with the oldest that is kept, or with what happened at `since`. A page may be short or
     * empty, and there may be more all the same: `isAtEnd` says so. 410 `RESET`: what follows the position cannot
     * be told without a gap; the answer's `next` is the oldest that is kept. With `Accept: text/event-stream` it
     * waits for more: events `fact`, each with its position as `id`, and `reset`; `Last-Event-ID` resumes. Without
     * a position it begins now. It ends after about ten minutes: come back. Scope: `read`.
     */
    list(query?: EventsListQuery, options?: CallOptions): Promise<FactPage>;
  };
  /** Cancel a notification that has not been taken up yet. Scope: `send`. */
  cancel(id: string, options?: CallOptions): Promise<Cancellation>;
  /**
   * Send a notification again that failed, expired, was cancelled or is ambiguous. It goes back to its lane with a
   * fresh budget of attempts. Scope: `send`.
   */
  retry(
    id: string,
    options?: CallOptions,
  ): Promise<{
    /** The notification's id. For example `"018f2c1d-7000-7000-8000-000000000000"`. */ notificationId: string;
    /** Where it stands. For example `"queued"`. */
    status: string;
  }>;
  schedules: {
    /** List recurring schedules. Scope: `read`. */
    list(query?: SchedulesListQuery, options?: CallOptions): Promise<Page<Schedule>>;
    /**
     * Send the same notification again and again. Either `cron` (five fields, or six with seconds) or `every` (a
     * duration, counted from `from`), by the clocks of `timezone`. One firing per tick, however many replicas run.
     * Ticks that nobody was there for fire once afterwards (`catchUp: once`) or not at all (`skip`). Texts may use
     * `{{ at }}`, the tick, and `{{ key }}`. Scope: `send`.
     */
    put(key: string, body: ScheduleRequest, options?: CallOptions): Promise<Schedule>;
    /** Read a recurring schedule. Scope: `read`. */
    get(key: string, options?: CallOptions): Promise<Schedule>;
    /** End a recurring schedule and forget its runs. Scope: `send`. */
    delete(key: string, options?: CallOptions): Promise<void>;
    /** The next times at which it fires. Scope: `read`. */
    next(key: string, count?: number, options?: CallOptions): Promise<ScheduleNext>;
    /** What became of its ticks, the latest first. Scope: `read`. */
    runs(key: string, query?: SchedulesRunsQuery, options?: CallOptions): Promise<Page<ScheduleRun>>;
    /** Pause a recurring schedule. Scope: `send`. */
    pause(key: string, options?: CallOptions): Promise<Schedule>;
    /** Go on with a paused schedule, from now on. Scope: `send`. */
    resume(key: string, options?: CallOptions): Promise<Schedule>;
  };
  reminders: {
    /** List reminders. Scope: `read`. */
    list(query?: RemindersListQuery, options?: CallOptions): Promise<Page<Reminder>>;
    /**
     * Remind people before an event. One send for each offset of `before`, counted back from `at`. Without `before`
     * the nearest of `scopes` that has offsets decides, then the scope `tenant`. Putting it again re-plans: what is
     * in the past is not sent, what was sent is not sent again. Texts may use `{{ at }}`, `{{ before }}` and `{{
     * key }}`. Scope: `send`.
     */
    put(key: string, body: ReminderRequest, options?: CallOptions): Promise<ReminderWithPlan>;
    /** Read a reminder, its plan and what was sent. Scope: `read`. */
    get(key: string, options?: CallOptions): Promise<ReminderWithPlan>;
    /** Forget a reminder and cancel what is planned. Scope: `send`. */
    delete(key: string, options?: CallOptions): Promise<void>;
    /** List scopes that have offsets. Scope: `read`. */
    listScopes(query?: RemindersListScopesQuery, options?: CallOptions): Promise<Page<ReminderScope>>;
    /**
     * Set the offsets that reminders of a scope inherit. The reminders that inherit them are re-planned in the
     * background; `replan` tells how far that is. An empty list lets the next scope decide. Scope: `send`.
     */
    putScope(scope: string, before: ReadonlyArray<string>, options?: CallOptions): Promise<ReminderScope>;
    /** Read a scope's offsets, and how far their last change has come. Scope: `read`. */
    getScope(scope: string, options?: CallOptions): Promise<ReminderScope>;
    /** Take a scope's offsets away. Scope: `send`. */
    deleteScope(scope: string, options?: CallOptions): Promise<void>;
  };
  endpoints: {
    /**
     * What was sent to an endpoint, and what its receiver answered. The newest first. `request` is what is posted
     * each time, with `webhook-timestamp` and `webhook-signature` of that try; `tries` has the last twenty, each
     * with the beginning of the answer. A page may be short: go on while there is a `nextCursor`. Scope: `read`.
     */
    deliveries(id: string, query?: EndpointsDeliveriesQuery, options?: CallOptions): Promise<Page<Delivery>>;
    /**
     * Tell an endpoint again what happened since an instant. Whether it was told then or not, each with the
     * `webhook-id` of then. `until`, `types` and `notification` narrow it. A call looks at `limit` facts at most,
     * and may find nothing where there is more: go on with `nextCursor` as the `cursor` until it is null. With
     * `dryRun` nothing is sent: `matched` says how many would be. 410 `RESET`: what happened then is no longer
     * kept; the answer's `next` is a `cursor` for the oldest that is. Scope: `admin`.
     */
    replay(id: string, body: Replay, options?: CallOptions): Promise<Replayed>;
    /**
     * Have callbacks sent to a URL. From now on, what happens to the tenant's notifications is posted there: of the
     * types in `events`, or all of them. `secret` signs (`v1`) and is shown only this once; `publicKey` verifies
     * what is signed with `v1a`. A tenant has 50 at most. Scope: `admin`.
     */
    create(body: EndpointRequest, options?: CallOptions): Promise<SecretEndpoint>;
    /**
     * Endpoints of the tenant, the oldest first. The built-in `requests` is among them once a request has named a
     * `callbackUrl`, or somebody has changed it. Scope: `read`.
     */
    list(options?: CallOptions): Promise<{
      /** What was found. */ data: Array<Endpoint>;
    }>;
    /** Read an endpoint. Scope: `read`. */
    get(id: string, options?: CallOptions): Promise<Endpoint>;
    /**
     * Change an endpoint. What is not named stays; null takes back what was said. It holds for what is sent from now
     * on, also for what waits. Of `requests`, URL and events are what each request says itself; its policy is for
     * requests that name none. Scope: `admin`.
     */
    change(id: string, body: EndpointChange, options?: CallOptions): Promise<Endpoint>;
    /**
     * Delete an endpoint. What still waits for it ends as dead letters. `requests` cannot be deleted. Scope:
     * `admin`.
     */
    delete(id: string, options?: CallOptions): Promise<void>;
    /**
     * Pause an endpoint. Nothing more is sent there. What happens meanwhile waits, and spends no attempt. Scope:
     * `admin`.
     */
    pause(id: string, reason: string, options?: CallOptions): Promise<Endpoint>;
    /**
     * Go on with an endpoint that is paused or was disabled. What happened while it was disabled is not sent by
     * itself: replay it. Scope: `admin`.
     */
    resume(id: string, options?: CallOptions): Promise<Endpoint>;
    /**
     * Sign with new secrets. The secret and key before sign beside the new ones for `keepSeconds`, a day unless it
     * is said; those before them no longer. Scope: `admin`.
     */
    rotate(
      id: string,
      body?: {
        /** How long the secret before signs as well. For example `86400`. */ keepSeconds?: number;
      },
      options?: CallOptions,
    ): Promise<SecretEndpoint>;
    /**
     * Post an `endpoint.test` now, and hear what the receiver said. Once, also while the endpoint is paused or
     * disabled. For `requests` with the `url` to post to. Scope: `admin`.
     */
    test(
      id: string,
      body?: {
        /** Where callbacks are posted. For example `"https://app.example.com/callbacks"`. */ url?: string;
      },
      options?: CallOptions,
    ): Promise<EndpointTest>;
  };
  callbackDeadLetters: {
    /**
     * Callbacks that failed for good, with their final error. The newest first, also of endpoints that were deleted.
     * A page may be short: go on while there is a `nextCursor`. Scope: `read`.
     */
    list(query?: CallbackDeadLettersListQuery, options?: CallOptions): Promise<Page<DeadCallback>>;
    /**
     * Send callbacks again that failed for good, by ids or by filter. With the `webhook-id` that they had. At most
     * `limit` go at once, the newest first: go on with `nextCursor` as the `cursor` until it is null. With `dryRun`
     * nothing is sent: `matched` says how many would be. Scope: `admin`.
     */
    requeue(body: Requeue, options?: CallOptions): Promise<Requeued>;
  };
  deadLetters: {
    /**
     * Notifications that failed for good, with their final error. A page may be short, of large requests or with a
     * rare filter: go on while there is a `nextCursor`. Scope: `read`.
     */
    list(query?: DeadLettersListQuery, options?: CallOptions): Promise<Page<DeadLetter>>;
    /**
     * Dead letters by cause. The cause is the error without what tells one message from another: addresses, ids and
     * numbers are `#`. It can be given as the `cause` of a list or a plan. 10,000 failures are looked at, the
     * newest; where there are more, the counts are of those alone, `searchedUntil` says back to when, and
     * `nextCursor` goes on. Scope: `read`.
     */
    groups(query?: DeadLettersGroupsQuery, options?: CallOptions): Promise<DeadLetterGroups>;
    /**
     * Send dead letters again, by ids or by filter. At most `limit` go at once, the newest first: go on with
     * `nextCursor` as the `cursor` until it is null. `remaining` counts what is still to go, looking no further
     * than 10,000 dead letters ahead. With `dryRun` nothing is sent: `matched` says how many of those 10,000 would
     * be, and `nextCursor` where to go on counting. Scope: `send`.
     */
    requeue(body: DeadLetterRequeue, options?: CallOptions): Promise<Requeued>;
  };
  plans: {
    /**
     * Plan to send dead letters again, or to take them off the list. Nothing is done yet: the plan says how many
     * there are, what sending them costs by estimate and how long it takes, and what is left out and why. Very many
     * are counted in the background: the state is `counting` until it is `ready`. To purge needs the scope `admin`.
     * Scope: `send`.
     */
    create(body: PlanRequest, options?: CallOptions): Promise<Plan>;
    /** List plans, the newest first. Scope: `read`. */
    list(query?: PlansListQuery, options?: CallOptions): Promise<Page<Plan>>;
    /**
     * Read a plan: what was counted, and how far it has come. `canary.standing` tells how those fared that went
     * first. Scope: `read`.
     */
    get(id: string, options?: CallOptions): Promise<Plan>;
    /**
     * Carry out a plan. It touches what was counted and nothing else, the newest first; what has changed since is
     * passed over and told. With a `canary` so many go first, and the plan is `waiting` until somebody lets it go
     * on; with `continue: sent` it goes on by itself when all of them were sent. Scope: `send`.
     */
    apply(id: string, body?: PlanApplication, options?: CallOptions): Promise<Plan>;
    /** Let a plan go on after its canaries. Scope: `send`. */
    continue(id: string, options?: CallOptions): Promise<Plan>;
    /** Abort a plan. Once this has answered, nothing more of it is done. What was done stays done. Scope: `send`. */
    abort(id: string, options?: CallOptions): Promise<Plan>;
  };
  templates: {
    /** List templates. Scope: `read`. */
    list(query?: TemplatesListQuery, options?: CallOptions): Promise<Page<TemplateVersion>>;
    /**
     * Store a new version of a template. The texts of `content` are Liquid; `mjml` is made into `htmlBody`. Either
     * the fields stand in `content` itself, or under `locales`, by language, with a `default`: a recipient with the
     * locale `fr-CA` reads `fr-CA`, else `fr`, else `default`. What stands in `htmlBody` and `mjml` is escaped.
     * With `strict`, an unknown variable is an error. The new version is sent from now on, unless `activate` is
     * false. What the latest version says already makes no new one. Templates of the channel `partial` are included
     * by others: `{% render "name" %}`, `{% layout "name" %}`, `<mj-include path="name" />`. Scope: `admin`.
     */
    put(id: string, body: TemplateRequest, options?: CallOptions): Promise<Template>;
    /** Read a template: its active version, or another. Scope: `read`. */
    get(id: string, query?: TemplatesGetQuery, options?: CallOptions): Promise<Template>;
    /**
     * Delete a template with all its versions. A notification that still waits for its turn and names it will fail.
     * Version numbers are not used again. Scope: `admin`.
     */
    delete(id: string, options?: CallOptions): Promise<void>;
    /** List the versions of a template, the latest first. Scope: `read`. */
    versions(id: string, query?: TemplatesVersionsQuery, options?: CallOptions): Promise<Page<TemplateVersion>>;
    /**
     * Send another version from now on. Other processes follow within five seconds. Notifications that name a
     * `templateVersion` keep to it. Scope: `admin`.
     */
    activate(id: string, version: number, options?: CallOptions): Promise<Template>;
    /**
     * Render a template and send nothing. `recipient` is there for templates that name it: {{ recipient.userId }}.
     * Scope: `read`.
     */
    preview(
      id: string,
      body: {
        /** What the template is filled with. For example `{"name":"Ana"}`. */ variables?: { [name: string]: unknown };
        /** Which version. For example `3`. */
        version?: number;
        /** A language tag: it decides which of a template's texts are used. For example `"fr-CA"`. */
        locale?: string;
        /** Who gets it: what the channel needs. */
        recipient?: Recipient;
      },
      options?: CallOptions,
    ): Promise<TemplatePreview>;
  };
  /**
   * What would become of a notification. The same body as a send. Answers with every decision and the rendered
   * content; stores and sends nothing. `outcome` is what the first attempt would come to as the guards stand now,
   * if the provider that is asked takes it, `status` what follows from it, and `wire` what would be sent, by
   * whom. `retryPolicy` is the one that holds, `retriedFor` how long it would be tried at the least and at the
   * most, and `resends` how often it would be sent again though it may have been sent. Scope: `send`.
   */
  explain(body: NotificationRequest, options?: CallOptions): Promise<Explanation>;
  devices: {
    /** The devices of a user. Scope: `read`. */
    list(
      userId: string,
      options?: CallOptions,
    ): Promise<{
      /** What was found. */ data: Array<Device>;
    }>;
    /**
     * Register a device of a user. A push to the user goes to all active devices. For the platform `web` the
     * browser's `subscription` is needed; the token is then a name of your own, such as a hash of its endpoint.
     * Scope: `send`.
     */
    put(userId: string, token: string, body: DeviceRequest, options?: CallOptions): Promise<Device>;
    /** Forget a device. Scope: `send`. */
    delete(userId: string, token: string, options?: CallOptions): Promise<void>;
  };
  suppressions: {
    /**
     * Addresses to which nothing more is sent. Hard bounces and complaints put addresses here by themselves. A send
     * to one ends as `suppressed`. Scope: `read`.
     */
    list(query?: SuppressionsListQuery, options?: CallOptions): Promise<Page<Suppression>>;
    /** Suppress an e-mail address or phone number by hand. Workers see it within five seconds. Scope: `send`. */
    put(
      address: string,
      body?: {
        /** Why, in words. For example `"moving to another provider"`. */ reason?: string;
      },
      options?: CallOptions,
    ): Promise<Suppression>;
    /** Send to an address again. Scope: `send`. */
    delete(address: string, options?: CallOptions): Promise<void>;
  };
  /**
   * Providers, with capabilities, health, limits and spend. Health is asked at most every 30 s. Spend is an
   * estimate of the tenant's last 30 days, in US dollars. `receivers` are the servers behind the tenant's own
   * URLs that are asked no more for now. `room` is what a limit allows at once now, `waitMs` how long the last
   * who waits has to wait; both are shared by all workers. Scope: `read`.
   */
  providers(options?: CallOptions): Promise<{
    /** What was found. */ data: Array<ProviderState>;
    /** What may be sent, and what room there is. */
    limits: {
      /** What the tenant may send. */ tenant: Array<LimitUse>;
      /** What one recipient may be sent. */
      recipient: Array<LimitUse>;
    };
  }>;
  /** Ask a provider whether it can be reached with these credentials; sends nothing. Scope: `admin`. */
  testProvider(
    name: string,
    options?: CallOptions,
  ): Promise<{
    /** Whether it is well. */ healthy: boolean;
    /** What else there is to say of it. For example `"nothing to add"`. */
    detail: string;
  }>;
  accounts: {
    /**
     * Use the tenant's own account with a provider. The settings are sealed with AES-256-GCM before they are stored,
     * and never shown again. Routes stay the deployment's: where they name this provider, the tenant's account is
     * used. Scope: `admin`.
     */
    put(
      name: string,
      body: {
        /** What kind of provider it is; the other fields are its settings, as in the configuration. For example `"smtp"`. */
        type: "smtp" | "sendgrid" | "ses" | "fcm" | "apns" | "webpush" | "twilio" | "slack" | "webhook";
        [name: string]: unknown;
      },
      options?: CallOptions,
    ): Promise<void>;
    /** Go back to the deployment's account. Scope: `admin`. */
    delete(name: string, options?: CallOptions): Promise<void>;
  };
  sources: {
    /**
     * How the sources stand. For the default tenant's administrators. `running`; `paused`, `since` when and for
     * which `reason`; `failing`, `since` when and with which `error`: it is tried again; `idle`: no process runs
     * it. `configured`: whether the configuration of the process that answers has it. `carried` and `refused` count
     * from its beginning. `offsets` is the next message of each partition that was ever read, and how many
     * `waiting` behind it were known when it last moved; `lag` is their sum. Scope: `admin`.
     */
    list(options?: CallOptions): Promise<{
      /** What was found. */ data: Array<SourceState>;
    }>;
    /**
     * Pause a source. No message more is read, within a few seconds; the broker keeps them. Pausing again changes
     * the reason. Scope: `admin`.
     */
    pause(name: string, reason: string, options?: CallOptions): Promise<SourceState>;
    /** Go on with a source. From where it was. What is not paused stays as it is. Scope: `admin`. */
    resume(name: string, options?: CallOptions): Promise<SourceState>;
  };
  sinks: {
    /**
     * How the sinks stand. For the default tenant's administrators. `running`; `paused`, `since` when and for which
     * `reason`; `failing`, `since` when and with which `error`: it is tried again; `idle`: no process runs it.
     * `configured`: whether the configuration of the process that answers has it. `carried` and `refused` count
     * from its beginning. `lag` is how long ago that happened which it is told next, and how many facts it has not
     * been told, of whatever type, counted up to 10,000. Scope: `admin`.
     */
    list(options?: CallOptions): Promise<{
      /** What was found. */ data: Array<SinkState>;
    }>;
    /**
     * Pause a sink. No page more is handed over; what happens meanwhile waits, for as long as the feed keeps it.
     * Pausing again changes the reason. Scope: `admin`.
     */
    pause(name: string, reason: string, options?: CallOptions): Promise<SinkState>;
    /** Go on with a sink. From where it was. What is not paused stays as it is. Scope: `admin`. */
    resume(name: string, options?: CallOptions): Promise<SinkState>;
    /**
     * Tell a sink again what happened since an instant. Whether it was told then or not, in order, and on to what it
     * has not been told yet. It is only ever sent back: where it has not come as far as that instant, it goes on
     * from where it is, and `moved` is false. 410 `RESET`: what happened then is no longer kept; the answer's
     * `next` is the oldest that is. Scope: `admin`.
     */
    replay(name: string, since: string, options?: CallOptions): Promise<SinkReplay>;
    /**
     * Forget a sink that is no longer configured. And how far it had come. 409 `SINK_IN_USE`: the process that
     * answers has it in its configuration, or some process runs it. With the same name it begins anew. Scope:
     * `admin`.
     */
    forget(name: string, options?: CallOptions): Promise<void>;
  };
  refusals: {
    /**
     * What sources and sinks passed over, the latest first. A message that is no request, with every fault, and a
     * fact that a sink will not have, with what it said. `place` says where it came from: it is not kept here
     * itself. A tenant sees its own; the default tenant's administrators see all, also those of which nobody knows
     * whose they are. They are kept for as long as the feed. Scope: `read`.
     */
    list(query?: RefusalsListQuery, options?: CallOptions): Promise<Page<Refusal>>;
  };
  /**
   * Where a provider reports delivery, bounces and complaints. Verified by the provider's own signature. With
   * `?tenant=` the signature of that tenant's own account counts, for what was sent with that account. Reports
   * may come twice and in any order. Scope: `none`.
   */
  report(
    name: string,
    raw: RawBody,
    options?: CallOptions,
  ): Promise<{
    /** How many reports were taken in. For example `1`. */ received: number;
  }>;
  /**
   * What sending cost, by provider, channel or a field of the metadata. Estimates in US dollars, from list prices
   * or the provider's settings. Without `since`, the last 30 days. By provider or channel it is as fast however
   * much was sent, and what retention drops stays counted: `since` and `until` are moved outwards to where a
   * minute begins, an hour beyond 2 days ago and a day beyond 62; what is older than 800 days is left out. By a
   * field of the metadata 10,000 notifications are looked at, of those accepted since a day before `since`, the
   * newest first: the sums are of those alone, `searchedUntil` says back to when, and `nextCursor` goes on.
   * Scope: `read`.
   */
  costs(query?: CostsQuery, options?: CallOptions): Promise<Costs>;
  dev: {
    messages: {
      /**
       * The mailbox: what the provider dev kept instead of sending it. The latest thousand messages of the tenant, and
       * no more than 50 MB of them, the newest first, with templates filled in. `to` is any of a message's
       * recipients, whole; `search` some of its words; `after` the id of a message that is known already. With `wait`
       * it answers as soon as something fits, and with none when that time is over: for tests that send and look for
       * what arrived. Scope: `read`.
       */
      list(query?: DevMessagesListQuery, options?: CallOptions): Promise<Page<KeptMessage>>;
      /** Forget the kept messages. Scope: `send`. */
      clear(options?: CallOptions): Promise<void>;
      /**
       * One message of the mailbox, as it would have gone over the wire. `wire` is what the channel's own provider
       * would have sent: the source of a mail, a signed webhook, a push payload. Scope: `read`.
       */
      get(id: string, options?: CallOptions): Promise<WholeMessage>;
      /** Forget one kept message. Scope: `send`. */
      delete(id: string, options?: CallOptions): Promise<void>;
      /** The bytes of a kept message, to be saved. Scope: `read`. */
      source(id: string, options?: CallOptions): Promise<Uint8Array>;
      /** An attachment of a kept mail, to be saved. Scope: `read`. */
      attachment(id: string, index: string, options?: CallOptions): Promise<Uint8Array>;
    };
    clock: {
      /** What the clock shows, and the true time. Only where `CARILLON_DEVELOPMENT` is true. Scope: `read`. */
      get(options?: CallOptions): Promise<DevClock>;
      /**
       * Move the clock on. For everybody and all processes at once: what is due by then is sent, what expires by then
       * is over. `by` is a duration, `to` an instant. For the default tenant's administrators, and only where
       * `CARILLON_DEVELOPMENT` is true. Scope: `admin`.
       */
      move(
        body:
          | {
              /** How far on, an ISO 8601 duration. For example `"P1M"`. */ by: string;
            }
          | {
              /** To which instant on. For example `"2027-01-01T09:00:00.000Z"`. */ to: string;
            },
        options?: CallOptions,
      ): Promise<DevClock>;
      /**
       * Set the clock back to the true time. What was made meanwhile keeps its times: it comes first in lists, and
       * what was planned waits for its time. For the default tenant's administrators, and only where
       * `CARILLON_DEVELOPMENT` is true. Scope: `admin`.
       */
      reset(options?: CallOptions): Promise<DevClock>;
    };
    faults: {
      /**
       * Faults that were asked for, and how many sends they are still for. The newest first, those that are used up
       * included. Only where `CARILLON_DEVELOPMENT` is true. Scope: `read`.
       */
      list(options?: CallOptions): Promise<{
        /** What was found. */ data: Array<InjectedFault>;
      }>;
      /**
       * Make the next sends fail. Of the tenant's sends that the provider `dev` carries, the next so many of a
       * channel, or of one provider of type `dev` where there are several. `429` and `503` sent nothing, `refused`
       * and `dead-recipient` are a no, `hang` never answers, `lost-answer` is kept and nobody hears of it. Only where
       * `CARILLON_DEVELOPMENT` is true. Scope: `send`.
       */
      inject(body: FaultRequest, options?: CallOptions): Promise<InjectedFault>;
      /** Forget all faults that were asked for. Scope: `send`. */
      clear(options?: CallOptions): Promise<void>;
    };
  };
  inbox: {
    /**
     * The items of a user's inbox, the newest first. Archived items are listed with `archived=true` only. `position`
     * is where the inbox stood: a stream that is opened with `?after=` it misses nothing that came after the list.
     * Scope: `read`.
     */
    list(userId: string, query?: InboxListQuery, options?: CallOptions): Promise<InboxPage>;
    /** How many items of an inbox are unread. Scope: `read`. */
    unread(
      userId: string,
      options?: CallOptions,
    ): Promise<{
      /** How many are unread. For example `3`. */ unread: number;
    }>;
    /** Say that items have arrived: their notifications are delivered. Scope: `send`. */
    ack(userId: string, ids: ReadonlyArray<string>, options?: CallOptions): Promise<Marked>;
    /** Mark items as read. Scope: `send`. */
    read(userId: string, ids: ReadonlyArray<string>, options?: CallOptions): Promise<Marked>;
    /** Put items away. Scope: `send`. */
    archive(userId: string, ids: ReadonlyArray<string>, options?: CallOptions): Promise<Marked>;
    /** Mark everything in an inbox as read, or everything of a category. Scope: `send`. */
    readAll(
      userId: string,
      body?: {
        /** What kind of item it is. For example `"orders"`. */ category?: string;
      },
      options?: CallOptions,
    ): Promise<Marked>;
    /**
     * Make a token with which a user's browser can read and mark that user's inbox, and nothing else. It cannot be
     * taken back: keep it short-lived. It goes into the header Authorization, never into a URL. Scope: `send`.
     */
    token(
      userId: string,
      body?: {
        /** How long the token works. For example `3600`. */ expiresInSeconds?: number;
      },
      options?: CallOptions,
    ): Promise<SubscriberToken>;
    /**
     * Put the token of this request into a cookie that no script can read. With a subscriber's token in the header
     * Authorization: the cookie holds the same and lasts as long. With an API key: a token is made for it. Scope:
     * `send`.
     */
    beginSession(userId: string, options?: CallOptions): Promise<void>;
    /** Take the cookie away. Scope: `send`. */
    endSession(userId: string, options?: CallOptions): Promise<void>;
    /**
     * What comes into an inbox, as it comes. Events: `notification` (an item, with an id), `unread` (a count),
     * `reset` (what was missed cannot be told: load the list). `Last-Event-ID`, or `?after=` with an id or the
     * `position` of a list, resumes without a gap. Without either it begins now. A comment comes every 25 seconds.
     * It ends after about ten minutes, and when the token expires: come back. Scope: `read`.
     */
    follow(userId: string, query?: InboxFollowQuery, options?: CallOptions): AsyncGenerator<InboxEvent, void>;
  };
  /**
   * Depth of the queue, lane by lane; what is paused, and what nobody takes. `untaken` is what waits and no living
   * worker takes, by lane, tenant, channel and region: counted up to 1,000 each, at most ten of a tenant. The
   * default tenant's administrators see it of all tenants; `depth` is one's own. `engine` is where ready work
   * waits that is accepted now; those administrators see in `engines` how much waits where, up to 10,000 of each,
   * and in `migration` what is being moved. What is queued and what is scheduled in a lane is counted up to
   * 10,000; where there is more of one, it is reckoned from what was accepted and what has ended, and where there
   * is of both, each is at least that: `isEstimate`. Scope: `read`.
   */
  queue(options?: CallOptions): Promise<QueueDepth>;
  /**
   * The balance of everything accepted. `accepted` equals `waiting` plus all endings, at every moment: the figures
   * come from one snapshot, and cost no more however much there is. What retention drops stays counted. Where
   * more than 10,000 wait, or a great deal has just happened, `waiting` is what is left of `accepted` and not
   * counted: `isEstimate`. Scope: `read`.
   */
  ledger(options?: CallOptions): Promise<Ledger>;
  migration: {
    /**
     * Move ready work to another engine. With `live-forward` what is accepted goes to the target from this instant
     * on, and what waits at the source is taken over. With `drain-first` it waits in PostgreSQL until workers have
     * emptied the source. 409 `MOVE_REFUSED` while another is under way, and unless every living worker can take
     * from the target. Scope: `admin`.
     */
    begin(body: QueueMoveRequest, options?: CallOptions): Promise<QueueMove>;
    /**
     * How far the move has come that is under way, or the last one. When it has ended, `audit` tells step by step,
     * and then for good, whether everything that waited when it began and was accepted since has ended or waits in
     * one place: for each engine accepted = ended + waiting. Where that is not so it is `unbalanced`, and
     * `examples` are some that are amiss. Scope: `read`.
     */
    get(options?: CallOptions): Promise<QueueMove>;
    /**
     * Go back to where ready work waited before. What is accepted goes there again from this instant on, and so does
     * what was moved and has not been taken. Nothing is lost either way. 409 `MOVE_REFUSED` where nothing is being
     * moved. Scope: `admin`.
     */
    abort(options?: CallOptions): Promise<QueueMove>;
  };
  /**
   * How much happened, how well and how fast. Counted when it happened, to the last second or so, and as fast
   * however much there is; what retention drops stays counted. A line for each step, and for each of what it is
   * grouped by, in which something happened. `since` and `until` are moved outwards to where a step begins. At
   * most 500 steps and 5,000 lines. Minutes are kept for 2 days, hours for 62, days for 800. To group by `tenant`
   * is for the default tenant's administrators; everybody else sees the own tenant. Scope: `read`.
   */
  statistics(query?: StatisticsQuery, options?: CallOptions): Promise<Statistics>;
  /**
   * Pause a channel; Pause a provider; Pause a tenant. Nothing more of it begins, within about a second; what has
   * begun ends. What waits keeps its place and spends no attempt. With `until` it ends by itself. Pausing again
   * changes reason and end. A paused provider is passed over for the next of its route. The default tenant's
   * administrators may pause everything, others their own accounts and, unless those have paused it, their own
   * tenant.
   */
  pause(
    kind: "channel" | "provider" | "tenant",
    name: string,
    body: PauseRequest,
    options?: CallOptions,
  ): Promise<Pause>;
  /**
   * Go on with a channel; Go on with a provider; Go on with a tenant. At once and in order. What is not paused
   * stays as it is.
   */
  resume(kind: "channel" | "provider" | "tenant", name: string, options?: CallOptions): Promise<void>;
  /** What is paused, the longest first. To all but the default tenant, what concerns them. Scope: `read`. */
  pauses(options?: CallOptions): Promise<{
    /** What was found. */ data: Array<Pause>;
  }>;
  tenants: {
    /** Tenants and their weights. For the default tenant's administrators. Scope: `admin`. */
    list(query?: TenantsListQuery, options?: CallOptions): Promise<Page<Tenant>>;
    /**
     * Give a tenant a larger or smaller share. Within a lane tenants take turns. One of weight 3 has three turns
     * where one of weight 1 has one, as long as both have something to send. For the default tenant's
     * administrators. Scope: `admin`.
     */
    weigh(name: string, weight: number, options?: CallOptions): Promise<Tenant>;
  };
  /**
   * Workers and their heartbeats. Those alive, and those that went during the last hour. `takes` is what one is
   * restricted to; where it names nothing, it takes everything. Scope: `read`.
   */
  workers(options?: CallOptions): Promise<{
    /** What was found. */ data: Array<Worker>;
  }>;
  /**
   * Who leads, the oldest open transaction, and dead rows of the queue's tables. For the default tenant's
   * administrators. `leaders` are the roles that one process has at a time, and who has each of them, or had it
   * last: without `leads` nobody does it now. `oldestTransaction` is that of others in this database, as far as
   * Carillon's own user may see it; it holds up vacuum, and followers if it has written something. `tables` are
   * as PostgreSQL's statistics have them: an estimate. Scope: `admin`.
   */
  house(options?: CallOptions): Promise<House>;
  users: {
    /**
     * Forget a person. What waits for them is cancelled; what identifies them is removed or blanked wherever it is
     * kept, in the background. What is accepted for the same user id afterwards is new, and stays. Asking again
     * while it is under way changes nothing. Scope: `admin`.
     */
    delete(userId: string, options?: CallOptions): Promise<UserDeletion>;
    /** How far the deletion of a person has come. Scope: `admin`. */
    deletion(userId: string, options?: CallOptions): Promise<UserDeletion>;
    /**
     * All that is known of a person. Notifications with their histories, suppressions and kept messages of the
     * provider dev; items of the inbox, devices, schedules and reminders that name them. A page may be short or
     * empty: go on while there is a `nextCursor`. Scope: `admin`.
     */
    exportPage(userId: string, query?: UsersExportPageQuery, options?: CallOptions): Promise<Page<KnownOfUser>>;
  };
  /**
   * Who did what to what, when and from where. Every change by a key, a process or the command line, with the
   * fields that changed. A tenant sees what was done to its own things and what its own keys did; the default
   * tenant also what is everybody's. `actor` is a key's id or name; `object` is `kind:name`, or a kind alone.
   * People and addresses are kept under pseudonyms: ask for `user:ID` or `suppression:ADDRESS` and what is kept
   * of them is found. A page may be short with a rare filter: go on while there is a `nextCursor`. Scope:
   * `admin`.
   */
  audit(query?: AuditQuery, options?: CallOptions): Promise<Page<AuditLine>>;
  sessions: {
    /**
     * Sign in: put a session that stands for the API key of this request into a cookie that no script can read. The
     * session may do what its key may, and ends with it. Changes by cookie are taken from this service's own pages
     * only. The key goes into the header Authorization; of one key's sessions the 50 newest are kept. Scope: `any`.
     */
    begin(
      body?: {
        /** How long the token works. For example `3600`. */ expiresInSeconds?: number;
      },
      options?: CallOptions,
    ): Promise<Who>;
    /** Who is asking: the key, its tenant and scopes, and the session if it came by one. Scope: `any`. */
    show(options?: CallOptions): Promise<Who>;
    /** Sign out: end the session of this request and take its cookie away. Scope: `any`. */
    end(options?: CallOptions): Promise<void>;
  };
  keys: {
    /** List API keys. Scope: `admin`. */
    list(options?: CallOptions): Promise<{
      /** What was found. */ data: Array<Key>;
    }>;
    /** Make an API key. The key is shown in this answer and never again: only its hash is kept. Scope: `admin`. */
    create(body: KeyRequest, options?: CallOptions): Promise<NewKey>;
    /**
     * Revoke an API key. The last admin key of one's own tenant stays: make another first. The default tenant's may
     * go where there is a fixed key (`CARILLON_API_KEY`). Scope: `admin`.
     */
    revoke(id: string, options?: CallOptions): Promise<void>;
  };
  /** Health of each part. Scope: `none`. */
  health(options?: CallOptions): Promise<Health>;
  /** Whether requests should be sent here. Scope: `none`. */
  ready(options?: CallOptions): Promise<Readiness>;
  /** Whether the process runs. Scope: `none`. */
  live(options?: CallOptions): Promise<{
    /** Whether the process runs. */ live: boolean;
  }>;
  /** Metrics for Prometheus. Scope: `none`. */
  metrics(options?: CallOptions): Promise<string>;
};
