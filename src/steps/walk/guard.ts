// What ends an attempt before anything is begun: it is too late, its channel or tenant is paused, its recipient must not be sent to, or the
// endpoint of a callback is gone.
//
// The guards of a provider, breaker and limits, stand right before it and are asked by carry(), which looks at the time again.

import { latenessOf } from "#domain/attempt.ts";
import type { Prepared } from "./prepare.ts";
import type { Result } from "./send.ts";
import type { World } from "./world.ts";

const WORDS = {
  bounce: "mail to this address bounced",
  complaint: "the recipient complained",
  manual: "the address was suppressed by hand",
};

/** Undefined: go on. */
export function guard(
  prepared: Prepared,
  now: number,
  { leaseMarginMs, pauses }: Pick<World, "leaseMarginMs" | "pauses">,
): Result | undefined {
  const late = latenessOf(prepared, now, leaseMarginMs);
  if (late) return { outcome: late };
  // Claimed before the pause: back to its place, where claims leave it alone until it is over.
  if (pauses.isPaused(prepared)) return { outcome: { kind: "released" } };
  if (prepared.outcome) return { outcome: prepared.outcome };
  const { suppression } = prepared;
  return suppression === undefined ? undefined : { outcome: { kind: "suppressed", reason: WORDS[suppression] } };
}
