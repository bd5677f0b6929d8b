// An endpoint as a callback is sent to it. It stands apart from where it is looked up, as every message may have one.

import type { Postponed, Reply } from "#domain/attempt.ts";
import type { CallbackPolicy, EndpointState } from "#domain/endpoint.ts";
import type { Rate } from "#domain/gcra.ts";
import type { SigningKeys } from "#wire/standard-webhooks.ts";

export type Endpoint = {
  tenant: number;
  id: string;
  /** Null for the one of a tenant's requests, which name their own. */
  url: string | null;
  state: EndpointState;
  policy: CallbackPolicy;
  rate: Rate | null;
  /** Undefined where no secret key opens them. */
  keys: SigningKeys | undefined;
};

/** What is resumed is brought back then; by itself it comes back after this long. */
const PAUSED_MS = 600_000;

/** What becomes of a callback without being sent there; undefined: it may be. */
export function outcomeAt(
  endpoint: Endpoint | undefined,
): Postponed | Extract<Reply, { kind: "rejected" }> | undefined {
  switch (endpoint?.state) {
    case undefined:
      return { kind: "rejected", reason: "the endpoint was deleted", category: "recipient" };
    case "disabled":
      return { kind: "rejected", reason: "the endpoint is disabled", category: "recipient" };
    case "paused":
      return { kind: "postponed", waitMs: PAUSED_MS, reason: "the endpoint is paused" };
    case "active":
      return undefined;
  }
}
