// A typed client of the HTTP API, on nothing but fetch: runs in Node, Deno, Bun and browsers.
//
// Sends are retried through lost answers and outages. That is safe, because each carries an
// idempotency key: the caller's, or one that the client makes and keeps through all its tries.

import { context, propagation } from "@opentelemetry/api";
import type { Event as TimelineEvent } from "#domain/event.ts";
import type { Channel, NotificationRequest } from "#domain/notification.ts";
import type { Priority } from "#domain/priority.ts";
import type { Ending, Status } from "#domain/status.ts";
import { type ConnectorClient, connectorClient } from "./connectors.ts";
import { type DevClient, devClient } from "./dev.ts";
import { type EndpointClient, endpointClient } from "./endpoints.ts";
import { CarillonError, errorOf, type ProblemBody } from "./error.ts";
import { type EventClient, eventClient } from "./events.ts";
import { type OperatingClient, operatingClient, type Pause } from "./operating.ts";
import { type PlanClient, planClient } from "./plans.ts";
import { type RunningClient, runningClient } from "./running.ts";
import { type SchedulingClient, schedulingClient } from "./scheduling.ts";

export type * from "./connectors.ts";
export type * from "./dev.ts";
export type * from "./endpoints.ts";
export type * from "./events.ts";
export type * from "./operating.ts";
export type * from "./plans.ts";
export type * from "./running.ts";
export type * from "./scheduling.ts";
// biome-ignore lint/performance/noBarrelFile: whoever receives callbacks and whoever sends come by one door, carillon/client
export {
  type CallbackBody,
  CallbackError,
  type CallbackHeaders,
  type VerifyOptions,
  verifyCallback,
} from "./verify-callback.ts";
export type { Channel, Ending, NotificationRequest, Priority, Status, TimelineEvent };
export { CarillonError, type ProblemBody };

export type Acceptance = {
  notificationId: string;
  status: Status;
  channel: Channel;
  priority: Priority;
  enqueuedAt: string;
  scheduledFor?: string;
  estimatedDeliveryAt?: string;
};
export type NotificationRecord = Omit<NotificationRequest, "priority" | "recipient"> & {
  notificationId: string;
  status: Status;
  priority: Priority;
  enqueuedAt: string;
  recipient: NonNullable<NotificationRequest["recipient"]>;
  traceId?: string;
};
export type Attempt = {
  number: number;
  provider?: string;
  worker?: string;
  startedAt?: string;
  endedAt?: string;
  outcome?: string;
  error?: string;
  latencyMs?: number;
  cost?: number;
};
export type NotificationDetail = NotificationRecord & { attempts: Attempt[]; events: TimelineEvent[] };
export type BatchResult = {
  results: { index: number; notificationId?: string; status?: Status; replayed?: boolean; error?: ProblemBody }[];
  summary: { total: number; succeeded: number; failed: number; pending: number };
};
export type ListFilters = {
  status?: Status;
  channel?: Channel;
  priority?: Priority;
  userId?: string;
  provider?: string;
  id?: string;
  /** An address, a number, a Slack channel or a URL. */
  recipient?: string;
  templateId?: string;
  /** Part of an attempt's error, in whatever case. */
  error?: string;
  since?: string;
  until?: string;
  metadata?: { [key: string]: string };
  limit?: number;
  cursor?: string;
};
export type Cancellation = { notificationId: string; cancelled: boolean; reason?: string };
export type QueueDepth = {
  engine: string;
  depth: { [lane in Priority]: number };
  processing: number;
  scheduled: number;
  oldestAgeMs: number;
  paused: Pause[];
  /** What waits and no living worker takes. */
  untaken: Untaken[];
};
export type Untaken = {
  priority: Priority;
  channel?: Channel;
  region?: string;
  tenant: string;
  count: number;
  oldestAgeMs: number;
};
export type Ledger = { accepted: number; waiting: number; balanced: boolean } & { [ending in Ending]: number };
export type ProviderState = {
  name: string;
  type: string;
  channels: Channel[];
  routes: Channel[];
  own: boolean;
  capabilities: { [name: string]: unknown };
  health?: { healthy: boolean; detail: string };
  paused?: Pause;
  spend: { since: string; sent: number; cost: number };
};
export type ClientOptions = {
  /** Where Carillon listens, for example http://127.0.0.1:8420. */
  url: string;
  key: string;
  /** Tries in all, the first included. */
  maxAttempts?: number;
  /** For one try. */
  timeoutMs?: number;
  fetch?: typeof fetch;
  sleep?: (ms: number) => Promise<void>;
};
export type CallOptions = {
  signal?: AbortSignal;
  /** Tries in all, where it is not to be as for all calls. */
  maxAttempts?: number;
  /** For one try, likewise. */
  timeoutMs?: number;
};

export type Rescheduling = { scheduledFor?: string; expiresAt?: string | null; priority?: Priority };
export type Rescheduled = Rescheduling & { notificationId: string; status: Status; priority: Priority };

export type Client = SchedulingClient &
  OperatingClient &
  EndpointClient &
  ConnectorClient &
  RunningClient &
  PlanClient &
  DevClient &
  EventClient & {
    send(request: NotificationRequest, options?: CallOptions): Promise<Acceptance>;
    sendBatch(requests: readonly NotificationRequest[], options?: CallOptions): Promise<BatchResult>;
    get(notificationId: string, options?: CallOptions): Promise<NotificationDetail>;
    list(
      filters?: ListFilters,
      options?: CallOptions,
    ): Promise<{ data: NotificationRecord[]; nextCursor: string | null; looked: number; searchedUntil?: string }>;
    /** Every notification that fits, page after page. */
    listAll(filters?: ListFilters, options?: CallOptions): AsyncGenerator<NotificationRecord>;
    cancel(notificationId: string, options?: CallOptions): Promise<Cancellation>;
    /** Another time, expiry or priority, as long as it waits. */
    reschedule(notificationId: string, change: Rescheduling, options?: CallOptions): Promise<Rescheduled>;
    queue(options?: CallOptions): Promise<QueueDepth>;
    ledger(options?: CallOptions): Promise<Ledger>;
    providers(options?: CallOptions): Promise<{ data: ProviderState[] }>;
    /** Whether a provider can be reached with its credentials; sends nothing. */
    testProvider(name: string, options?: CallOptions): Promise<{ healthy: boolean; detail: string }>;
  };

const BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;
/** Answers that say "not now": overloaded, away, or a proxy that found nobody. */
const RETRIED = new Set([429, 502, 503, 504]);

export function createClient(options: ClientOptions): Client {
  const { url, key, timeoutMs = 10_000, sleep = wait } = options;
  const base = url.replace(/\/+$/, "");
  const request = options.fetch ?? fetch;
  const authorization = { authorization: `Bearer ${key}` };

  async function call<Body>(
    method: string,
    path: string,
    callOptions: CallOptions = {},
    body?: unknown,
  ): Promise<Body> {
    const { signal, maxAttempts = options.maxAttempts ?? 5 } = callOptions;
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= maxAttempts;
      const answer = await attemptOnce(method, path, callOptions, body).catch((error: unknown) => {
        if (isLast || signal?.aborted) throw error;
        return undefined;
      });
      if (answer?.ok) return (answer.status === 204 ? undefined : await answer.json()) as Body;
      if (answer && (isLast || !RETRIED.has(answer.status))) throw await errorOf(answer);
      // Full jitter spreads clients that failed together; the server's own wish is a floor under it.
      const backoffMs = Math.random() * Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** attempt);
      await sleep(Math.max(backoffMs, retryAfterMs(answer)));
      signal?.throwIfAborted();
    }
  }

  function attemptOnce(
    method: string,
    path: string,
    { signal, timeoutMs: withinMs = timeoutMs }: CallOptions,
    body: unknown,
  ): Promise<Response> {
    const timeout = AbortSignal.timeout(withinMs);
    const headers: { [name: string]: string } = { ...authorization };
    if (body !== undefined) headers["content-type"] = "application/json";
    // The trace that the caller is in, if it has an SDK for that; otherwise nothing.
    propagation.inject(context.active(), headers);
    return request(base + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  }

  const list: Client["list"] = (filters = {}, callOptions) =>
    call("GET", `/v1/notifications${queryOf(filters)}`, callOptions);

  return {
    ...schedulingClient(call),
    ...operatingClient(call),
    ...endpointClient(call),
    ...connectorClient(call),
    ...runningClient(call),
    ...planClient(call),
    ...devClient(call),
    ...eventClient(call, {
      open: (path, headers, signal) => request(base + path, { headers: { ...authorization, ...headers }, signal }),
      sleep,
      isPassing: (status) => RETRIED.has(status),
    }),
    list,
    send: (notification, callOptions) => call("POST", "/v1/notifications", callOptions, withKey(notification)),
    sendBatch: (notifications, callOptions) =>
      call("POST", "/v1/notifications/batch", callOptions, { notifications: notifications.map(withKey) }),
    get: (id, callOptions) => call("GET", `/v1/notifications/${encodeURIComponent(id)}`, callOptions),
    async *listAll(filters = {}, callOptions) {
      let cursor: string | null | undefined = filters.cursor;
      do {
        const page: Awaited<ReturnType<Client["list"]>> = await list(
          { ...filters, ...(cursor && { cursor }) },
          callOptions,
        );
        yield* page.data;
        cursor = page.nextCursor;
      } while (cursor);
    },
    async cancel(id, callOptions) {
      try {
        return await call<Cancellation>("POST", `/v1/notifications/${encodeURIComponent(id)}/cancel`, callOptions);
      } catch (error) {
        if (!(error instanceof CarillonError) || error.code !== "NOT_CANCELLABLE") throw error;
        return { notificationId: id, cancelled: false, reason: error.message };
      }
    },
    reschedule: (id, change, callOptions) =>
      call("PATCH", `/v1/notifications/${encodeURIComponent(id)}`, callOptions, change),
    queue: (callOptions) => call("GET", "/v1/queue", callOptions),
    ledger: (callOptions) => call("GET", "/v1/ledger", callOptions),
    providers: (callOptions) => call("GET", "/v1/providers", callOptions),
    testProvider: (name, callOptions) => call("POST", `/v1/providers/${encodeURIComponent(name)}/test`, callOptions),
  };
}

const withKey = (request: NotificationRequest): NotificationRequest => ({
  ...request,
  idempotencyKey: request.idempotencyKey ?? crypto.randomUUID(),
});

function queryOf({ metadata = {}, ...filters }: ListFilters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, String(value));
  for (const [name, value] of Object.entries(metadata)) query.set(`metadata.${name}`, value);
  return query.size > 0 ? `?${query}` : "";
}

function retryAfterMs(answer: Response | undefined): number {
  const seconds = Number(answer?.headers.get("retry-after") ?? 0);
  return Number.isFinite(seconds) ? Math.min(seconds, 60) * 1000 : 0;
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
