// The guard of a delivery that needs its lock: what the others let through asks for the lock last.

import { latenessOf } from "#domain/attempt.ts";
import type { Admitted, Guard } from "#guards/guard.ts";
import type { Door } from "./locked.ts";

const LEAST_HELD_MS = 1_000;
/** Another replica may know better than we do that its holder is gone. */
const MOST_HELD_MS = 5_000;

export function lockedGuard(
  door: Door,
  { guard, monotonic, leaseMarginMs }: { guard: Guard; monotonic: () => number; leaseMarginMs: number },
): Guard {
  return {
    ...guard,
    async admit(provider, message, turn): Promise<Admitted> {
      const ticket = await guard.admit(provider, message, turn);
      if (typeof ticket !== "number") return ticket;
      const held = await door.enter();
      // Held by another: the other delivers. If it dies instead, we or another replica look again until its lock has run out.
      const refusal = held
        ? {
            kind: "postponed" as const,
            waitMs: Math.min(MOST_HELD_MS, Math.max(LEAST_HELD_MS, held.expiresInMs)),
            reason: "another replica holds its lock",
            isPassedOver: false,
          }
        : latenessOf(turn, monotonic(), leaseMarginMs);
      if (refusal) guard.giveBack(provider, message, ticket);
      return refusal ?? ticket;
    },
  };
}
