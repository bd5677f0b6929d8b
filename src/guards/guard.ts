// What stands between the walk and a provider: its whether it is paused, its breaker, then the limits.
//
// carry() asks before a provider is asked, and reports what came of it. Where no limits are set and the breaker is closed,
// both answer at once and keep nothing.

import type { Message, Provider } from "#channels/channel.ts";
import type { Attempt, Late, Postponed, Reply } from "#domain/attempt.ts";
import type { Passage } from "./passage.ts";
import type { To } from "./receivers.ts";

/** Not now. `isPassedOver`: the next provider of the route may have it, as this one is down rather than busy. */
export type Halt = Postponed & { isPassedOver: boolean };

/** What a guard knows of the attempt: its place in line, and until when it may begin. */
export type Turn = Pick<Attempt, "seq" | "rank" | "lease" | "expiresAtMs">;

export type Admitted = number | Halt | Late;

export type Guard = {
  /**
   * A ticket, or why not. Every call of a provider passes here, so this is where its expiry and its lease are looked at: whatever
   * came before took its time, and so may waiting for the ticket.
   */
  admit(provider: Provider, message: Message, turn: Turn): Admitted | Promise<Admitted>;
  /** Once for every ticket that was used. */
  report(provider: Provider, message: Message, ticket: number, reply: Reply): void;
  /** The way that a send begins with, where what goes through it at once is counted. */
  passage(provider: Provider, to: To): Passage | undefined;
  /** Instead of a report: the provider was not asked after all. What was taken from limits stays taken. */
  giveBack(provider: Provider, message: Message, ticket: number): void;
};

/** Lets everything through. */
export const NO_GUARD: Guard = {
  admit: () => 0,
  report: () => undefined,
  giveBack: () => undefined,
  passage: () => undefined,
};
