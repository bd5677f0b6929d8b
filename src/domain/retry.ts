// What follows from an attempt's outcome. Pure, so that each rule is one line of a table test.

import type { Attempt, Delay, Outcome, Settlement } from "./attempt.ts";

export type RetryPolicy = {
  maxAttempts: number;
  backoffMultiplier: number;
  firstBackoffMs: number;
  maxBackoffMs: number;
};

export const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 5,
  backoffMultiplier: 2,
  firstBackoffMs: 1_000,
  maxBackoffMs: 300_000,
};
/** A provider that says "too many" needs longer than one that stumbled. */
const LIMITED_FACTOR = 5;

export function policyOf({ request }: Pick<Attempt, "request">, defaults: RetryPolicy): RetryPolicy {
  return { ...defaults, ...request.retryPolicy };
}

/** `random` in [0, 1): full jitter above a floor of half the backoff spreads retries without hurrying any. */
export function backoffMs(attempt: number, policy: RetryPolicy, random: number): number {
  const full = Math.min(policy.maxBackoffMs, policy.firstBackoffMs * policy.backoffMultiplier ** (attempt - 1));
  return Math.round(full * (0.5 + random / 2));
}

export function settlementFor(
  attempt: Pick<Attempt, "number" | "request">,
  outcome: Outcome,
  policy: RetryPolicy,
  random: number,
): Settlement {
  const retry = ({ retryAfterMs = 0, isPartly = false }: Delay = {}, factor = 1): Settlement => {
    if (attempt.number >= policy.maxAttempts) return { to: isPartly ? "sent" : "failed" };
    // A provider may slow us down, never hurry us past our own backoff.
    const waitMs = Math.max(
      retryAfterMs,
      Math.min(policy.maxBackoffMs, factor * backoffMs(attempt.number, policy, random)),
    );
    return { to: "pending", waitMs, spendsAttempt: true };
  };
  switch (outcome.kind) {
    case "accepted":
      return { to: "sent" };
    case "rejected":
    case "dead-recipient":
      return { to: "failed" };
    case "unavailable":
      return retry(outcome);
    case "limited":
      return retry(outcome, LIMITED_FACTOR);
    case "ambiguous":
      // Sending again may deliver it twice, holding may lose it: the sender has said which is worse.
      return (attempt.request.onAmbiguous ?? "resend") === "resend" ? retry() : { to: "ambiguous" };
    case "expired":
      return { to: "expired" };
    case "released":
      return { to: "queued" };
    case "suppressed":
      return { to: "suppressed" };
    case "postponed":
      // Our own choice, not a failure: the attempt is given back.
      return { to: "pending", waitMs: outcome.waitMs, spendsAttempt: false };
  }
}
