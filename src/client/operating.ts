// The part of the client for who runs it: pauses, and tenants.

import type { CallOptions } from "./client.ts";
import { type Page, type PageOptions, pageQuery } from "./scheduling.ts";

export type PausedKind = "channel" | "provider" | "tenant";
export type PauseRequest = { reason: string; until?: string };
export type Pause = PauseRequest & {
  kind: PausedKind | "lane";
  name: string;
  /** Of a provider: the tenant whose own account it is. */
  tenant?: string;
  pausedAt: string;
  pausedBy?: string;
};
export type Tenant = { name: string; weight: number; createdAt: string };

export type UserDeletion = {
  userId: string;
  state: "running" | "done";
  requestedAt: string;
  finishedAt?: string;
  /** How many were blanked so far. */
  notifications: number;
};
export type KnownOfUser = { kind: string; [field: string]: unknown };

export type AuditFilters = PageOptions & {
  since?: string;
  until?: string;
  /** A key's id or name. */
  actor?: string;
  action?: string;
  /** `kind:name`, or a kind alone. */
  object?: string;
};
export type AuditLine = {
  at: string;
  actor: { kind: "key" | "user" | "provider" | "process" | "command-line"; id: string; name?: string };
  action: string;
  object: string;
  /** Whose it is that was changed. */
  tenant: string;
  change: { before?: { [field: string]: unknown }; after?: { [field: string]: unknown } };
  address?: string;
  requestId?: string;
};

export type OperatingClient = {
  /** Nothing more of it begins. Nothing is lost or spent. */
  pause(kind: PausedKind, name: string, pause: PauseRequest, options?: CallOptions): Promise<Pause>;
  resume(kind: PausedKind, name: string, options?: CallOptions): Promise<void>;
  pauses(options?: CallOptions): Promise<{ data: Pause[] }>;
  users: {
    /** Forgets a person, in the background. */
    delete(userId: string, options?: CallOptions): Promise<UserDeletion>;
    deletion(userId: string, options?: CallOptions): Promise<UserDeletion>;
    /** All that is known of one, page after page. */
    export(userId: string, options?: CallOptions): AsyncGenerator<KnownOfUser>;
  };
  /** Who did what to what, the newest first. */
  audit(filters?: AuditFilters, options?: CallOptions): Promise<Page<AuditLine>>;
  tenants: {
    list(page?: PageOptions, options?: CallOptions): Promise<Page<Tenant>>;
    /** Its turns within a lane, 1 to 100, beside those of the others. */
    weigh(name: string, weight: number, options?: CallOptions): Promise<Tenant>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

export function operatingClient(call: Call): OperatingClient {
  const path = (kind: string, name: string, rest = "") => `/v1/${kind}s/${encodeURIComponent(name)}${rest}`;
  return {
    pause: (kind, name, body, options) => call("POST", path(kind, name, "/pause"), options, body),
    resume: (kind, name, options) => call("POST", path(kind, name, "/resume"), options),
    pauses: (options) => call("GET", "/v1/pauses", options),
    users: {
      delete: (userId, options) => call("DELETE", path("user", userId), options),
      deletion: (userId, options) => call("GET", path("user", userId, "/deletion"), options),
      async *export(userId, options) {
        let cursor: string | null = null;
        do {
          const query: string = pageQuery({ cursor: cursor ?? undefined });
          const page: Page<KnownOfUser> = await call("GET", path("user", userId, `/export${query}`), options);
          yield* page.data;
          cursor = page.nextCursor;
        } while (cursor !== null);
      },
    },
    audit: (filters, options) => call("GET", `/v1/audit${pageQuery(filters)}`, options),
    tenants: {
      list: (page, options) => call("GET", `/v1/tenants${pageQuery(page)}`, options),
      weigh: (name, weight, options) => call("PATCH", path("tenant", name), options, { weight }),
    },
  };
}
