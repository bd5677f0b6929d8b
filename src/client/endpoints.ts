// The part of the client for callbacks: endpoints, what was sent there, and what could not be.

import type { CallOptions } from "./client.ts";
import { type Page, type PageOptions, pageQuery } from "./scheduling.ts";

export type CallbackPolicy = "best_effort" | "aggressive" | "persistent";
export type EndpointRequest = {
  url: string;
  /** What it is told of; all unless it is said. */
  events?: string[];
  policy?: CallbackPolicy;
  /** What is kept in order, one after another. */
  fifo?: "notification" | "user" | "endpoint";
  rate?: { per: "second" | "minute" | "hour" | "day"; most: number };
  description?: string;
};
/** Null takes back what was said. */
export type EndpointChange = {
  [name in keyof EndpointRequest]?: EndpointRequest[name] | (name extends "url" | "policy" ? never : null);
};
export type Endpoint = Omit<EndpointRequest, "url" | "policy"> & {
  id: string;
  /** The built-in `requests` has none: each request names its own. */
  url?: string;
  policy: CallbackPolicy;
  state: "active" | "paused" | "disabled";
  reason?: string;
  /** Verifies what is signed with `v1a`. */
  publicKey: string;
  previousSecretUntil?: string;
  createdAt: string;
  changedAt: string;
  lastSuccessAt?: string;
  failingSince?: string;
};
/** `secret` is shown when it is made, and never again. */
export type SecretEndpoint = Endpoint & { secret: string };
export type EndpointTest = {
  webhookId: string;
  delivered: boolean;
  latencyMs: number;
  status?: number;
  body?: string;
  error?: string;
};
export type Delivery = {
  id: string;
  webhookId: string;
  endpointId: string;
  type: string;
  status: string;
  createdAt: string;
  request: { url?: string; headers: { [name: string]: string }; body: string };
  tries: {
    number: number;
    startedAt?: string;
    endedAt: string;
    outcome?: string;
    error?: string;
    latencyMs?: number;
    answer?: { status: number; body: string };
  }[];
};
export type DeadCallback = {
  id: string;
  webhookId: string;
  endpointId: string;
  type: string;
  createdAt: string;
  failedAt: string;
  attempts: number;
  outcome?: string;
  error?: string;
  data: { [name: string]: unknown };
};
export type DeadCallbackFilter = { endpoint?: string; type?: string; since?: string; until?: string };
export type Requeue = ({ ids: string[] } | { filter: DeadCallbackFilter; cursor?: string }) & {
  dryRun?: boolean;
  limit?: number;
};
export type Requeued = {
  matched: number;
  requeued: number;
  remaining: number;
  nextCursor: string | null;
  dryRun: boolean;
};
export type Replay = {
  since: string;
  until?: string;
  /** Some of what the endpoint is told of. */
  types?: string[];
  notification?: string;
  dryRun?: boolean;
  limit?: number;
  cursor?: string;
};
export type Replayed = { matched: number; replayed: number; nextCursor: string | null; dryRun: boolean };
export type DeliveryFilter = PageOptions & { status?: string; since?: string; until?: string };

export type EndpointClient = {
  endpoints: {
    create(endpoint: EndpointRequest, options?: CallOptions): Promise<SecretEndpoint>;
    list(options?: CallOptions): Promise<{ data: Endpoint[] }>;
    get(id: string, options?: CallOptions): Promise<Endpoint>;
    change(id: string, change: EndpointChange, options?: CallOptions): Promise<Endpoint>;
    delete(id: string, options?: CallOptions): Promise<void>;
    pause(id: string, reason: string, options?: CallOptions): Promise<Endpoint>;
    /** Also one that was disabled. */
    resume(id: string, options?: CallOptions): Promise<Endpoint>;
    /** The secret before goes on signing for `keepSeconds`, a day unless it is said. */
    rotate(id: string, rotation?: { keepSeconds?: number }, options?: CallOptions): Promise<SecretEndpoint>;
    /** Posts an `endpoint.test` now; for `requests`, to `url`. */
    test(id: string, to?: { url?: string }, options?: CallOptions): Promise<EndpointTest>;
    /** What happened since then, again, with the ids that it had. Go on with `nextCursor` until it is null. */
    replay(id: string, which: Replay, options?: CallOptions): Promise<Replayed>;
    deliveries(id: string, filter?: DeliveryFilter, options?: CallOptions): Promise<Page<Delivery>>;
  };
  callbackDeadLetters: {
    list(filter?: DeadCallbackFilter & PageOptions, options?: CallOptions): Promise<Page<DeadCallback>>;
    requeue(which: Requeue, options?: CallOptions): Promise<Requeued>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

export function endpointClient(call: Call): EndpointClient {
  // An answer that was lost is not asked for again: it would be another endpoint, another secret, another post.
  const once = (options?: CallOptions) => ({ ...options, maxAttempts: 1 });
  const path = (id: string, rest = "") => `/v1/endpoints/${encodeURIComponent(id)}${rest}`;
  return {
    endpoints: {
      create: (endpoint, options) => call("POST", "/v1/endpoints", once(options), endpoint),
      list: (options) => call("GET", "/v1/endpoints", options),
      get: (id, options) => call("GET", path(id), options),
      change: (id, change, options) => call("PATCH", path(id), options, change),
      delete: (id, options) => call("DELETE", path(id), options),
      pause: (id, reason, options) => call("POST", path(id, "/pause"), options, { reason }),
      resume: (id, options) => call("POST", path(id, "/resume"), options),
      rotate: (id, rotation = {}, options) => call("POST", path(id, "/rotate"), once(options), rotation),
      test: (id, to = {}, options) => call("POST", path(id, "/test"), once(options), to),
      replay: (id, which, options) => call("POST", path(id, "/replay"), once(options), which),
      deliveries: (id, filter, options) => call("GET", path(id, `/deliveries${pageQuery(filter)}`), options),
    },
    callbackDeadLetters: {
      list: (filter, options) => call("GET", `/v1/callback-dead-letters${pageQuery(filter)}`, options),
      requeue: (which, options) => call("POST", "/v1/callback-dead-letters/requeue", options, which),
    },
  };
}
