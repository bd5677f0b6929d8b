// When that which a breaker holds is given up: what is held spends no attempt, and without this would wait for a host that is gone for
// good until each of thousands had been its probe some dozen times. Pure, so that each rule is one line of a table test.

import type { Attempt, Postponed } from "./attempt.ts";
import { madeAtMs } from "./ids.ts";
import { type RetryPolicy, stretchMs } from "./retry-policy.ts";

/**
 * A request's own policy may be over in seconds, and a breaker is open for a minute at a time: no outage that is shorter than this
 * ends what was never tried, neither by how long it has been held nor by how long its provider has been silent.
 */
export const LEAST_MS = 3_600_000;

/** For how long it is held: as long as its attempts would have lasted at the longest waits that chance may draw. */
export const heldForMs = (policy: RetryPolicy): number => Math.max(LEAST_MS, stretchMs(policy, 1));

/**
 * Whether it may have been held for that long, by what is at hand: it was not held before it was made. Only then need anybody look
 * into the record.
 */
export const mayBeOver = (
  { id }: Pick<Attempt, "id">,
  { silentMs = 0 }: Postponed,
  policy: RetryPolicy,
  nowMs: number,
): boolean => silentMs >= LEAST_MS && isOver(madeAtMs(id), policy, nowMs);

export const isOver = (sinceMs: number, policy: RetryPolicy, nowMs: number): boolean =>
  nowMs - sinceMs >= heldForMs(policy);
