// A guard says not now: that is written into the record the first time, and given up where nobody has answered for as long as it is tried.

import { type Attempt, databaseMs, type Postponed } from "#domain/attempt.ts";
import { policyOf } from "#domain/retry-policy.ts";
import { isOver, mayBeOver } from "#domain/unanswered.ts";
import type { Result } from "./send.ts";
import type { World } from "./world.ts";

export type HoldWorld = Pick<World, "postponements" | "retry" | "monotonic">;

/** Never rejects: where the record cannot be read it goes on waiting. */
export async function hold(
  attempt: Attempt,
  postponed: Postponed,
  result: Result,
  { postponements, retry, monotonic }: HoldWorld,
): Promise<Result> {
  await postponements.note(attempt, postponed);
  const policy = policyOf(attempt, retry);
  const nowMs = databaseMs(attempt.lease, monotonic());
  if (!mayBeOver(attempt, postponed, policy, nowMs)) return result;
  const sinceMs = await postponements.heldSince(attempt);
  if (sinceMs === undefined || !isOver(sinceMs, policy, nowMs)) return result;
  const { reason, isPartly = false } = postponed;
  return { ...result, outcome: { kind: "unanswered", reason, isPartly } };
}
