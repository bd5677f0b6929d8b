// The contract of a provider: it carries messages of one or several channels.
//
// send() never throws and never waits past its deadline by much: whatever happened on the wire is a Reply. The
// idempotency key is the same for every attempt at a notification, for providers that can use it.
// test/conformance/provider.ts holds every provider to this.

import type { Reply } from "#domain/attempt.ts";
import type { Device } from "#domain/device.ts";
import type { Channel, KeptRequest, NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import type { Report } from "#domain/report.ts";
import type { TraceContext } from "#domain/trace-context.ts";
import type { Endpoint } from "./callback/endpoint.ts";

export type { Device, Report };

export type Message = {
  notificationId: string;
  tenant: number;
  attempt: number;
  /** Templates are rendered by now: content holds what is to be sent. */
  request: KeptRequest;
  /** Of this send, for receivers that go on with it; without it the request's own holds. */
  trace?: TraceContext;
  /** For push: one device per call. */
  device?: Device;
  /** For callbacks: where it goes. */
  endpoint?: Endpoint;
};

export type SendOptions = {
  idempotencyKey: string;
  /** How long the provider may take to be reached, and as long again to answer what has left; in milliseconds. */
  timeoutMs: number;
  /** Aborted when the lease is lost, when the worker stops for good, or at last if the provider minds no time. Made when first looked at. */
  readonly signal: AbortSignal;
};

/** A message as it goes over the wire: without credentials, and before it is encrypted for whoever reads it. */
export type Encoded = {
  type: string;
  body: string;
  /** Those that are of this message, its signature included. */
  headers?: { readonly [name: string]: string };
};

export type Capabilities = {
  /** Messages per call. */
  batch: number;
  attachments: boolean;
  /** It reports delivery later. */
  tracking: boolean;
  /** It can tell what became of a message whose answer was lost. */
  reconciles: boolean;
  /** The largest message, in bytes as the provider counts them. */
  maxBytes?: number;
  /** What the provider itself allows, as far as it says. */
  perSecond?: number;
  /** Messages under way at a time. More wait before they leave, where it costs them nothing. */
  abreast?: number;
  /** Estimated cost of one message in US dollars. */
  cost?: number;
  /** For push: the platforms it serves; all of them unless it says. */
  platforms?: readonly Device["platform"][];
};

export type Health = { healthy: boolean; detail: string };

/** A report as it came over HTTP, before anybody believes it. */
export type ReportRequest = {
  /** The URL as the provider knows it, query included. */
  url: string;
  header: (name: string) => string | undefined;
  body: Buffer;
};

export type Provider = {
  name: string;
  /** The tenant whose own account it is; none for the deployment's. */
  owner?: number;
  channels: readonly Channel[];
  /** Takes the account's credentials out of a text that others may read. */
  redact?(text: string): string;
  capabilities: Capabilities;
  /** What this provider would refuse about a message, known before it is sent. Paths as in the request. */
  validate?(request: NotificationRequest): Fault[];
  /** What send() puts on the wire for a message; or the reply with which it refuses it by itself. */
  encode?(message: Message): Encoded | Reply | Promise<Encoded | Reply>;
  send(message: Message, options: SendOptions): Reply | Promise<Reply>;
  /** Where it goes to a URL that a tenant gave: its origin. Guards then take that receiver for itself, not for this provider. */
  receiver?(message: Pick<Message, "request" | "device" | "endpoint">): string | undefined;
  /** Whether it was accepted, asked later, where the answer was lost. Only some providers know. */
  reconcile?(message: Message, options: SendOptions): Promise<"accepted" | "unknown-message" | "unknown">;
  /** Whether it could be reached with these credentials, without sending anything. */
  check?(signal: AbortSignal): Promise<Health>;
  /** Verifies the signature and reads the reports; undefined when the signature does not hold. */
  report?(request: ReportRequest): Promise<Report[] | undefined>;
  close?(): Promise<void>;
};
