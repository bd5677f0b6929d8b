// Looks at a claim before any of it is sent: to whom nothing may be sent, and where a push goes. One query for all of
// them, or none.
//
// What was not looked at must not be sent, so only this file makes a `Prepared`, and only that can be delivered.

import type { Endpoint } from "#channels/callback/endpoint.ts";
import type { Claimed, Outcome } from "#domain/attempt.ts";
import type { Device } from "#domain/device.ts";
import type { Suppression } from "#store/suppressions.ts";
import { findDevices } from "./find-devices.ts";
import { findEndpoints } from "./find-endpoints.ts";
import { suppress } from "./suppress.ts";
import type { World } from "./world.ts";

/** Never there: it keeps everybody else from making one. */
declare const wasLookedAt: unique symbol;

/** What is found out about an attempt. */
export type Findings = {
  /** Why nothing may be sent to this recipient. */
  suppression?: Suppression["why"];
  /** For push: where it goes. */
  devices?: Device[];
  /** For a callback: where it goes; and what became of it without being sent there. */
  endpoint?: Endpoint;
  outcome?: Outcome;
};

/** The second stage of the walk: the same attempt, looked at. */
export type Prepared = Claimed & Readonly<Findings> & { readonly [wasLookedAt]: true };

/** At once, where there is nothing to look up. Rejects when that cannot be done; then none of them is prepared. */
export function prepare(
  claimed: readonly Claimed[],
  { db, suppressions, traces, callbacks }: Pick<World, "db" | "suppressions" | "traces" | "callbacks">,
): readonly Prepared[] | Promise<readonly Prepared[]> {
  traces?.claimed(claimed);
  const calling = callbacks && findEndpoints(claimed, callbacks);
  if (calling) return calling.then(() => lookedAt(claimed));
  const suppressing = suppress(claimed, suppressions);
  const finding = findDevices(claimed, db);
  if (!suppressing && !finding) return lookedAt(claimed);
  return Promise.all([suppressing, finding]).then(() => lookedAt(claimed));
}

/** The only place where a claimed attempt becomes a prepared one: an object each, not two. */
const lookedAt = (claimed: readonly Claimed[]) => claimed as readonly Prepared[];
