// The contract of a provider: it carries messages of one or several channels.
//
// send() never throws and never waits past its deadline by much: whatever happened on the wire is a Reply. The
// idempotency key is the same for every attempt at a notification, for providers that can use it.

import type { Reply } from "../domain/attempt.ts";
import type { NotificationRequest } from "../domain/notification.ts";

export type Message = {
  notificationId: string;
  tenant: number;
  attempt: number;
  request: NotificationRequest;
};

export type SendOptions = {
  idempotencyKey: string;
  /** How long the provider may take, in milliseconds. */
  timeoutMs: number;
  /** Aborted at the deadline, when the lease is lost, and when the worker stops for good. Made when first looked at. */
  readonly signal: AbortSignal;
};

export type Provider = {
  name: string;
  send(message: Message, options: SendOptions): Reply | Promise<Reply>;
  /** Whether it was accepted, asked later, where the answer was lost. Only some providers know. */
  reconcile?(message: Message, options: SendOptions): Promise<"accepted" | "unknown-message" | "unknown">;
  close?(): Promise<void>;
};
