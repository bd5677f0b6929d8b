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

export type OperatingClient = {
  /** Nothing more of it begins. Nothing is lost or spent. */
  pause(kind: PausedKind, name: string, pause: PauseRequest, options?: CallOptions): Promise<Pause>;
  resume(kind: PausedKind, name: string, options?: CallOptions): Promise<void>;
  pauses(options?: CallOptions): Promise<{ data: Pause[] }>;
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
    tenants: {
      list: (page, options) => call("GET", `/v1/tenants${pageQuery(page)}`, options),
      weigh: (name, weight, options) => call("PATCH", path("tenant", name), options, { weight }),
    },
  };
}
