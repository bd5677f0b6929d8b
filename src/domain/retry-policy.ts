// How often a notification is tried, and for how long: a table by channel, and what a request may say instead.

import type { Channel, NotificationRequest } from "./notification.ts";

export type RetryPolicy = {
  maxAttempts: number;
  backoffMultiplier: number;
  firstBackoffMs: number;
  maxBackoffMs: number;
};

/**
 * Other people's servers are away for a restart, a night, a day. A stumble costs a second; then 3, 9, 27 seconds and so on up to an
 * hour, which is how long one that has been away all day goes unnoticed when it is back. 57 attempts are 24.5 hours at the shortest
 * waits that chance may draw and 49 at the longest.
 */
const A_DAY: RetryPolicy = {
  maxAttempts: 57,
  backoffMultiplier: 3,
  firstBackoffMs: 1_000,
  maxBackoffMs: 3_600_000,
};

/**
 * Our own database, our own disk, our own output. While the database is away nobody claims anything, so no attempt is spent however long
 * that lasts: what fails is a statement in a failover, or under a lock. A disk that is full waits for a person, who is told sooner by
 * a dead letter. There is no stranger's server to spare, and a reader who waits: so short waits, over half an hour to an hour.
 */
const AN_HOUR: RetryPolicy = {
  maxAttempts: 20,
  backoffMultiplier: 2,
  firstBackoffMs: 1_000,
  maxBackoffMs: 300_000,
};

export const CHANNEL_RETRY: Readonly<{ [channel in Channel]: RetryPolicy }> = {
  email: A_DAY,
  push: A_DAY,
  sms: A_DAY,
  slack: A_DAY,
  webhook: A_DAY,
  inbox: AN_HOUR,
  console: AN_HOUR,
  file: AN_HOUR,
};

/**
 * What a request's own policy leaves out. It is not the channel's, and it stays as it is: who wrote `{ "maxAttempts": 3 }` goes on
 * getting what that meant.
 */
export const OWN_RETRY: RetryPolicy = {
  maxAttempts: 5,
  backoffMultiplier: 2,
  firstBackoffMs: 1_000,
  maxBackoffMs: 300_000,
};

export type RetryPolicies = { byChannel: typeof CHANNEL_RETRY; own: RetryPolicy };

/** `maxAttempts`, where it is given, holds wherever a request does not name a number. */
export function retryPolicies(maxAttempts?: number): RetryPolicies {
  if (maxAttempts === undefined) return { byChannel: CHANNEL_RETRY, own: OWN_RETRY };
  const limited = Object.entries(CHANNEL_RETRY).map(([channel, policy]) => [channel, { ...policy, maxAttempts }]);
  return {
    byChannel: Object.fromEntries(limited) as RetryPolicies["byChannel"],
    own: { ...OWN_RETRY, maxAttempts },
  };
}

/** A request's own policy stands in place of the channel's as a whole. A channel that only another version knows has no policy, and must not hold up a sweep. */
export const policyOf = (
  { request }: { request: Pick<NotificationRequest, "channel" | "retryPolicy"> },
  { byChannel, own }: RetryPolicies,
): RetryPolicy => (request.retryPolicy ? { ...own, ...request.retryPolicy } : (byChannel[request.channel] ?? own));

/** `random` in [0, 1): a random point above a floor of half the wait spreads retries without hurrying any. */
export function backoffMs(attempt: number, policy: RetryPolicy, random: number): number {
  const full = Math.min(policy.maxBackoffMs, policy.firstBackoffMs * policy.backoffMultiplier ** (attempt - 1));
  return Math.round(full * (0.5 + random / 2));
}

/** From the first attempt to the last, where each is over at once and chance draws the same every time. */
export function stretchMs(policy: RetryPolicy, random: number): number {
  let ms = 0;
  for (let attempt = 1; attempt < policy.maxAttempts; attempt++) ms += backoffMs(attempt, policy, random);
  return ms;
}
