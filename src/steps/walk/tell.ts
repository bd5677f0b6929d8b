// The last step: what was settled is told, to whoever counts and to the scheduler that will be needed for it.

import { databaseMs } from "#domain/attempt.ts";
import type { Settled } from "./settle.ts";
import type { World } from "./world.ts";

/** More than a settlement takes from being decided to being told: a hint may be early, never late. */
const SETTLE_MS = 100;

export function tell(
  settled: Settled,
  { facts, hints, monotonic, callbacks }: Pick<World, "facts" | "hints" | "monotonic" | "callbacks">,
): void {
  const now = monotonic();
  facts.settled(settled, now);
  if (callbacks) {
    callbacks.settled(settled);
    return;
  }
  const { attempt, settlement } = settled;
  if (settlement.to === "pending") hints.due(databaseMs(attempt.lease, now) + settlement.waitMs - SETTLE_MS);
}
