// What a worker lends to the steps of its walk.

import type { SendOptions } from "#channels/channel.ts";
import type { Providers } from "#channels/providers.ts";
import type { Exchanges } from "#domain/exchange.ts";
import type { RetryPolicies } from "#domain/retry-policy.ts";
import type { Guard } from "#guards/guard.ts";
import type { Locked } from "#guards/lock/locked.ts";
import type { Pauses } from "#guards/pauses.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Hints } from "#store/connection/hints.ts";
import type { Facts } from "#telemetry/facts.ts";
import type { Traces } from "#telemetry/traces/traces.ts";
import type { Templates } from "#templates/load.ts";
import type { Singleflight } from "#timing/singleflight.ts";
import type { CallbackWorld } from "./find-endpoints.ts";
import type { Postponements } from "./postpone.ts";
import type { Result } from "./send.ts";
import type { Settlements } from "./settle.ts";
import type { Suppressions } from "./suppress.ts";

export type World = {
  db: Queryable;
  suppressions: Suppressions;
  providers: Pick<Providers, "route">;
  templates: Pick<Templates, "render">;
  guard: Guard;
  pauses: Pick<Pauses, "isPaused">;
  /** Only where deliveries are locked. */
  locked?: Locked;
  /** Only where callbacks are carried. */
  callbacks?: CallbackWorld;
  /** Sends under way, by notification. */
  flights: Singleflight<Result>;
  postponements: Postponements;
  settlements: Settlements;
  retry: RetryPolicies;
  /** Of which attempts the record says what went over the wire. */
  exchanges: Exchanges;
  /** A send starts only while the lease has this much left. */
  leaseMarginMs: number;
  hints: Pick<Hints, "due">;
  facts: Facts;
  /** Only where an SDK for traces is loaded. */
  traces?: Traces | undefined;
  monotonic: () => number;
  random: () => number;
};

/** For one attempt. */
export type Slot = SendOptions & {
  /** On the worker's monotonic clock. */
  startedAt: number;
  /** The provider has answered: another attempt may begin while this one waits for its commit. */
  free: () => void;
};
