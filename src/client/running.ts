// The part of the client for who keeps it running: keys, workers, dead letters.

import type { Scope } from "#domain/api-key.ts";
import type { Channel } from "#domain/notification.ts";
import type { Priority } from "#domain/priority.ts";
import type { CallOptions } from "./client.ts";
import type { DeadLetterFilter } from "./plans.ts";
import { type Page, type PageOptions, pageQuery } from "./scheduling.ts";

export type Key = {
  id: string;
  tenant: string;
  name: string;
  scopes: Scope[];
  createdAt: string;
  expiresAt?: string;
  revokedAt?: string;
  lastUsedAt?: string;
};
export type KeyRequest = { name: string; scopes: readonly Scope[]; tenant?: string; expiresAt?: string };
export type Worker = {
  name: string;
  alive: boolean;
  startedAt: string;
  seenAt: string;
  stoppedAt?: string;
  held?: number;
  sending?: number;
  delivered?: number;
  takes: { lanes?: Priority[]; channels?: Channel[]; tenants?: string[]; regions?: string[] };
};
export type DeadLetter = {
  notificationId: string;
  channel: Channel;
  priority: Priority;
  enqueuedAt: string;
  failedAt: string;
  attempts: number;
  provider?: string;
  outcome?: string;
  error?: string;
};
export type DeadLetterFilters = PageOptions & DeadLetterFilter;
export type DeadLetterGroup = {
  /** The error without what tells one message from another. */
  cause?: string;
  provider?: string;
  outcome?: string;
  channel: Channel;
  count: number;
  newestAt: string;
  oldestAt: string;
  /** The newest three. */
  examples: string[];
};
/** Where more failed than were looked at, the counts are of these alone, back to `searchedUntil`. */
export type DeadLetterGroups = Page<DeadLetterGroup> & { total: number; looked: number; searchedUntil?: string };

export type RunningClient = {
  keys: {
    list(options?: CallOptions): Promise<{ data: Key[] }>;
    /** `key` is shown in this answer, and never again. */
    create(key: KeyRequest, options?: CallOptions): Promise<Key & { key: string }>;
    revoke(id: string, options?: CallOptions): Promise<void>;
  };
  /** Those alive, and those that went during the last hour. */
  workers(options?: CallOptions): Promise<{ data: Worker[] }>;
  deadLetters: {
    list(filters?: DeadLetterFilters, options?: CallOptions): Promise<Page<DeadLetter>>;
    groups(filters?: DeadLetterFilters, options?: CallOptions): Promise<DeadLetterGroups>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

export function runningClient(call: Call): RunningClient {
  return {
    keys: {
      list: (options) => call("GET", "/v1/keys", options),
      // An answer that was lost had the only copy: asked again it would be another key.
      create: (key, options) => call("POST", "/v1/keys", { maxAttempts: 1, ...options }, key),
      revoke: (id, options) => call("DELETE", `/v1/keys/${encodeURIComponent(id)}`, options),
    },
    workers: (options) => call("GET", "/v1/workers", options),
    deadLetters: {
      list: (filters, options) => call("GET", `/v1/dead-letters${pageQuery(filters)}`, options),
      groups: (filters, options) => call("GET", `/v1/dead-letters/groups${pageQuery(filters)}`, options),
    },
  };
}
