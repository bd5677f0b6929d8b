// One leased try at a notification, and what may come of it.

import type { Event } from "./event.ts";
import type { KeptRequest } from "./notification.ts";

/** What all attempts of one claim share. */
export type Lease = {
  /** What the queue knows it by. Nobody else looks into it. */
  readonly handle: unknown;
  /** What a request of it comes to, on average. */
  readonly meanBytes: number;
  /** On the worker's monotonic clock: never later than the database lets the lease run out. Moves when it is extended. */
  endsAt: number;
  /** The database's clock at the claim, and the worker's monotonic clock then: together they tell the database's time. */
  claimedAtMs: number;
  claimedAt: number;
  /** When the claim was answered, on the same clock: what is read of the database from then on is newer than it. */
  answeredAt: number;
};

/** One try at a notification, under a lease. That it was claimed is on record: it was committed before this existed. */
export type Attempt = {
  seq: number;
  lease: Lease;
  /** What the queue knows it by, within its lease. Nobody else looks into it. */
  readonly handle: unknown;
  tenant: number;
  id: string;
  rank: number;
  /** 1 for the first. */
  number: number;
  request: KeptRequest;
  /** From when on it could be claimed. */
  sinceMs: number;
  expiresAtMs: number | undefined;
};

/** What a claim hands to a worker: the first stage of the walk. It is prepared, or handed back. */
export type Claimed = Attempt & { heldBy?: never };

/** Taken over from the worker that let its lease run out: it can only be settled. */
export type Swept = Attempt & { heldBy: number };

/** Whose affair a failure is. It tells people where to look; what happens next is decided by the kind alone. */
export type Category = "recipient" | "content" | "credentials" | "throttled" | "outage" | "network" | "timeout";

/** `code` is the provider's own; `reason` its words or ours, short, on one line and without secrets. */
export type Failure = { reason: string; code?: string; category?: Category; answer?: Answer };

/** What a receiver answered, for the tenant whose it is. */
export type Answer = { status: number; body: string };

/** `isPartly`: some of the recipient's devices have it already, so that giving up is no failure. */
export type Delay = { retryAfterMs?: number; isPartly?: boolean };

/** What a provider's answer amounts to. Channels never throw: whatever happened on the wire is one of these. */
export type Reply =
  | { kind: "accepted"; receipt?: string; cost?: number; answer?: Answer }
  | ({ kind: "rejected" } & Failure)
  | ({ kind: "dead-recipient" } & Failure)
  /** It was not sent: the provider is away or refuses for now. */
  | ({ kind: "unavailable" } & Delay & Failure)
  /** It was not sent: too many at once. */
  | ({ kind: "limited" } & Delay & Failure)
  /** It may have been sent: the answer was lost. */
  | ({ kind: "ambiguous" } & Failure);

/** Why an attempt ended before anything was sent. */
export type Refusal = Late | { kind: "suppressed"; reason: string } | Postponed | Unanswered;

/** Its time is over; or its lease might be, while it is being sent. */
export type Late = { kind: "expired" } | { kind: "released" };

/** What the database's clock shows when the worker's shows `now`. */
export const databaseMs = ({ claimedAtMs, claimedAt }: Lease, now: number): number => claimedAtMs + (now - claimedAt);

/** A send starts only while its lease has this much left. */
export const leaseMarginMs = (leaseMs: number): number => Math.min(5_000, leaseMs / 4);

/** Whether it may still begin. To be asked right before a provider is: everything before that may have taken its time. */
export function latenessOf(
  { lease, expiresAtMs }: Pick<Attempt, "lease" | "expiresAtMs">,
  now: number,
  marginMs: number,
): Late | undefined {
  if (expiresAtMs !== undefined && databaseMs(lease, now) >= expiresAtMs) return { kind: "expired" };
  if (now >= lease.endsAt - marginMs) return { kind: "released" };
  return undefined;
}

/**
 * No provider was asked: a limit or a breaker of ours says not before then. `waitsFor`: or as soon as one of these accounts is no
 * longer paused. `silentMs`: it is a breaker that holds it and nothing else, and for so long nobody who could have it has answered.
 */
export type Postponed = {
  kind: "postponed";
  waitMs: number;
  reason: string;
  waitsFor?: readonly string[];
  silentMs?: number;
  isPartly?: boolean;
};

/** It was held for as long as it is tried, because whoever could have it does not answer: nobody is asked any more. */
export type Unanswered = { kind: "unanswered"; reason: string; isPartly?: boolean };

/** What two who were asked for the same come to: the wait of the first to be over, or until either is resumed; silence only where both are silent. */
export function sooner(one: Postponed, other: Postponed): Postponed {
  const { silentMs: _, ...first } = other.waitMs < one.waitMs ? other : one;
  const waitsFor = [...new Set([...(one.waitsFor ?? []), ...(other.waitsFor ?? [])])];
  if (waitsFor.length > 0) first.waitsFor = waitsFor;
  if (one.silentMs === undefined || other.silentMs === undefined) return first;
  return { ...first, silentMs: Math.min(one.silentMs, other.silentMs) };
}

export type Outcome = Reply | Refusal;

export type Settlement =
  | { to: Exclude<Extract<Event, { type: "attempt" }>["to"], "pending"> }
  /** Waits for its time, and may be claimed again from then on. */
  | { to: "pending"; waitMs: number; spendsAttempt: boolean; waitsFor?: readonly string[] }
  /** Back to its lane at once, as if it had never been claimed. */
  | { to: "queued" };

/** An attempt that is over, and what is to be written of it. A claim that is handed back has ended too. */
export type Ended = {
  attempt: Attempt;
  settlement: Settlement;
  /** What is written into the record; none for a claim that is handed back. */
  line?: {
    outcome: string;
    provider?: string;
    error?: string;
    latencyMs?: number;
    cost?: number;
    detail?: { [name: string]: unknown };
    /** By which the provider will report what became of it. */
    receipt?: string;
    /** The tenant whose own account carried it, and will sign those reports; none for the deployment's. */
    owner?: number;
    /** Whose attempt it was, if not the one who settles it. */
    worker?: number;
  };
};

/** Back to its lane, as if it had never been claimed. */
export const handedBack = (attempt: Claimed): Ended => ({ attempt, settlement: { to: "queued" } });
