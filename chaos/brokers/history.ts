// What a run with brokers leaves behind for the checker: what topics held, what was made of it, what happened to that, and what each sink has.

import type { Fault } from "../history.ts";

/**
 * `good`: a request, which becomes one notification each time it is written. `same`: with an idempotency key, and written more than once. `poison`: no
 * request. `empty`: asks for nothing.
 */
export const KINDS = ["good", "same", "poison", "empty"] as const;
export type Kind = (typeof KINDS)[number];

/** A message as its topic has it at the end. Its key tells its kind. */
export type Written = { topic: string; partition: number; offset: number; key: string };

/** What the one who wrote it was told. */
export type Sent = { key: string; isConfirmed: boolean };

/** By the key in its metadata. */
export type Accepted = { id: string; key: string };

export type Told = { id: string; notificationId: string; number: number; type: string };

/** What a sink has, in its order: of one that is a set, in any. */
export type Arrivals = { sink: string; isSet: boolean; facts: { id: string; type: string }[] };

export type BrokerHistory = {
  seed: number;
  seconds: number;
  mutant: string | undefined;
  sent: Sent[];
  written: Written[];
  accepted: Accepted[];
  /** Messages by their places, `topic/partition/offset`. */
  refused: string[];
  /** Facts that a sink would not have. */
  refusedFacts: string[];
  offsets: { topic: string; partition: number; next: number }[];
  facts: Told[];
  arrivals: Arrivals[];
  faults: Fault[];
  /** Times that a group was shared out anew. */
  rebalances: number;
  quietAt: number;
  /** Undefined: it never was. */
  drainedAt: number | undefined;
  /** What did not go on at the end, and why. */
  failing: string[];
};

export const kindOf = (key: string): Kind => KINDS.find((kind) => key.startsWith(`${kind} `)) ?? "poison";
