// What stands between the walk and a provider: its breaker first, then the limits.
//
// carry() asks before a provider is asked, and reports what came of it. Where no limits are set and the breaker is closed,
// both answer at once and keep nothing.

import type { Message, Provider } from "../channels/channel.ts";
import type { Postponed, Reply } from "../domain/attempt.ts";
import type { Place } from "./limit.ts";

/** Not now. `isPassedOver`: the next provider of the route may have it, as this one is down rather than busy. */
export type Held = Postponed & { isPassedOver: boolean };

export type Guard = {
  /** A ticket, or why not. */
  admit(provider: Provider, message: Message, place: Place): number | Held | Promise<number | Held>;
  /** Once for every ticket. */
  report(provider: Provider, message: Message, ticket: number, reply: Reply): void;
};

/** Lets everything through. */
export const NO_GUARD: Guard = { admit: () => 0, report: () => undefined };
