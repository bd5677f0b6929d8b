// Callbacks: what a tenant is told of its notifications. In the queue and in the record each is a notification of our own, of a channel
// that no request can name, with what is to be posted in its request.

import { createHash } from "node:crypto";
import type { CallbackPolicy } from "./endpoint.ts";
import type { NotificationRequest } from "./notification.ts";
import { CALLBACK_RANK } from "./priority.ts";
import type { RetryPolicy } from "./retry-policy.ts";
import type { TraceContext } from "./trace-context.ts";

export type Callback = {
  /** The same over all tries and crashes: by it a receiver knows a copy. */
  webhookId: string;
  endpoint: string;
  /** Where this one goes, of the endpoint that every tenant has for its requests; others have a URL of their own. */
  url?: string;
  type: string;
  /** When it happened. */
  timestamp: string;
  data: { [name: string]: unknown };
  /** What it stands in line with: of these the next is not sent before the one before has ended. */
  line?: string;
  /** Until when it is tried, of those that are tried for as long as what they tell of is kept. */
  until?: string;
};

const CHANNEL = "callback";

/** As it is stored. The numbers of its policy stand in it, so that a keeper that knows nothing of callbacks goes by them too. */
type CallbackRequest = TraceContext & {
  channel: typeof CHANNEL;
  content: object;
  retryPolicy: RetryPolicy;
  callback: Callback;
};

/** Undefined for what a sender handed over. */
export const callbackOf = (request: NotificationRequest | CallbackRequest): Callback | undefined =>
  "callback" in request ? request.callback : undefined;

export const isCallback = ({ channel }: { channel: string }): boolean => channel === CHANNEL;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_MS = 7 * 24 * HOUR_MS;

/** After the first try: 30, 60 and 120 s; ten more, from a minute to an hour; from a minute to a week, for as long as it is kept. */
export const CALLBACK_RETRY: Readonly<{ [policy in CallbackPolicy]: RetryPolicy }> = {
  best_effort: { maxAttempts: 4, backoffMultiplier: 2, firstBackoffMs: 30_000, maxBackoffMs: 120_000 },
  aggressive: { maxAttempts: 11, backoffMultiplier: 2, firstBackoffMs: MINUTE_MS, maxBackoffMs: HOUR_MS },
  // More than any retention has room for: it ends with that.
  persistent: { maxAttempts: 2_000, backoffMultiplier: 2, firstBackoffMs: MINUTE_MS, maxBackoffMs: WEEK_MS },
};

/** Made of what it is about and where it goes, so that whoever makes it again makes the same. */
export const webhookIdOf = (...parts: readonly (string | number)[]): string =>
  `msg_${createHash("sha256").update(parts.join(" ")).digest("base64url").slice(0, 27)}`;

/** What is posted; `tenant` is whose it is. */
export type NewCallback = {
  id: string;
  tenant: number;
  callback: Callback;
  policy: CallbackPolicy;
  /** The trace of what it is about, which it is part of. */
  context?: TraceContext;
};

/** A row for carillon.accept(). What stands in line waits for its turn, which is given to it and is no time. */
export function acceptedRow({ id, tenant, callback, policy, context }: NewCallback): string {
  const retryPolicy = CALLBACK_RETRY[policy];
  const request: CallbackRequest = { channel: CHANNEL, content: {}, retryPolicy, ...context, callback };
  return JSON.stringify({
    i: id,
    t: -tenant,
    c: CHANNEL,
    p: CALLBACK_RANK,
    u: callback.endpoint,
    ...(callback.line !== undefined && { d: NEVER }),
    r: request,
  });
}

/** Until it is somebody's turn. */
export const NEVER = "9999-12-31T00:00:00Z";
