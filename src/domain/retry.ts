// What follows from an attempt's outcome. Pure, so that each rule is one line of a table test.

import type { Attempt, Delay, Outcome, Settlement } from "./attempt.ts";
import { isCallback } from "./callback.ts";
import { backoffMs, type RetryPolicy } from "./retry-policy.ts";

/** A provider that says "too many" needs longer than one that stumbled. */
const LIMITED_FACTOR = 5;
/** Of what may have been sent already, however many attempts are left: nobody gets ten copies of one SMS. */
export const RESENDS = 2;

/** The waits of callbacks are promised as they are. */
const factorOf = ({ request }: Tried): number => (isCallback(request) ? 1 : LIMITED_FACTOR);

type Tried = Pick<Attempt, "number" | "request">;

/**
 * Whether what follows depends on its doubts: on how many earlier attempts may have sent it. Only then need anybody look: a first
 * attempt has none before it.
 */
export function dependsOnDoubts(attempt: Tried, outcome: Outcome, { maxAttempts }: RetryPolicy): boolean {
  if (attempt.number === 1 || !isResent(attempt) || isCallback(attempt.request)) return false;
  switch (outcome.kind) {
    case "ambiguous":
      return attempt.number < maxAttempts;
    case "unavailable":
    case "limited":
      return attempt.number >= maxAttempts;
    case "unanswered":
      return true;
    default:
      return false;
  }
}

export function settlementFor(
  attempt: Tried,
  outcome: Outcome,
  policy: RetryPolicy,
  random: number,
  doubts: number,
): Settlement {
  switch (outcome.kind) {
    case "accepted":
      return { to: "sent" };
    case "rejected":
    case "dead-recipient":
      return { to: "failed" };
    case "unavailable":
      return retry(attempt, outcome, policy, backoffMs(attempt.number, policy, random), doubts);
    case "limited":
      return retry(attempt, outcome, policy, factorOf(attempt) * backoffMs(attempt.number, policy, random), doubts);
    case "ambiguous":
      // Callbacks are at least once, and a receiver knows a copy by its id: a lost answer is like none.
      if (isCallback(attempt.request)) return retry(attempt, {}, policy, backoffMs(attempt.number, policy, random), 0);
      return isResent(attempt) ? resend(attempt, policy, random, doubts) : { to: "ambiguous" };
    case "expired":
      return { to: "expired" };
    case "released":
      return { to: "queued" };
    case "suppressed":
      return { to: "suppressed" };
    case "unanswered":
      return givenUp(outcome, doubts);
    case "postponed":
      // Our own choice, not a failure: the attempt is given back.
      return {
        to: "pending",
        waitMs: outcome.waitMs,
        spendsAttempt: false,
        ...(outcome.waitsFor && { waitsFor: outcome.waitsFor }),
      };
  }
}

function retry({ number }: Tried, delay: Delay, policy: RetryPolicy, backoff: number, doubts: number): Settlement {
  const { retryAfterMs = 0 } = delay;
  if (number >= policy.maxAttempts) return givenUp(delay, doubts);
  // A provider may slow us down, never hurry us past our own backoff.
  const waitMs = Math.max(retryAfterMs, Math.min(policy.maxBackoffMs, backoff));
  return { to: "pending", waitMs, spendsAttempt: true };
}

/** Who may have got it earlier must not be said to have got nothing. */
const givenUp = ({ isPartly = false }: Delay, doubts: number): Settlement => ({
  to: isPartly ? "sent" : doubts > 0 ? "ambiguous" : "failed",
});

function resend({ number }: Tried, policy: RetryPolicy, random: number, doubts: number): Settlement {
  if (number >= policy.maxAttempts || doubts >= RESENDS) return { to: "ambiguous" };
  // After the last there is none: it waits as long as the policy ever does, to outlive what lost the answers before.
  const after = doubts === RESENDS - 1 ? policy.maxAttempts - 1 : number;
  return { to: "pending", waitMs: backoffMs(after, policy, random), spendsAttempt: true };
}

/** Sending again may deliver it twice, holding may lose it: the sender has said which is worse. */
const isResent = ({ request }: Tried): boolean => (request.onAmbiguous ?? "resend") === "resend";
