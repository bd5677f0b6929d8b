// The guards as they stand, for whoever wants to know and sends nothing: gates like a worker's, told what workers have told each
// other, over limits that are looked at and not taken from.

import { type LimitState, PERIODS, type Rate, waitMs } from "#domain/gcra.ts";
import type { BreakerRow } from "#store/breakers.ts";
import { createGates, type GatesOptions } from "./gates.ts";
import type { Guard } from "./guard.ts";
import type { Limit } from "./limit/limit.ts";
import { wayOf } from "./receivers.ts";

export type LookOptions = Pick<GatesOptions, "accountOf" | "limits" | "monotonic"> & {
  limit: Pick<Limit, "look">;
  /** By account. */
  breakers: ReadonlyMap<string, BreakerRow>;
};

export function createLook({ accountOf, limits, monotonic, limit, breakers }: LookOptions): Guard {
  const gates = createGates({
    accountOf,
    limits,
    limit: lookingLimit(limit),
    leaseMarginMs: 0,
    monotonic,
    random: () => 0,
    sleep: async () => undefined,
    tell: () => undefined,
  });
  return {
    ...gates,
    async admit(provider, message, turn) {
      const way = wayOf(provider, message, accountOf);
      const row = breakers.get(way.account);
      if (row) {
        // Only where somebody has come is there a gate that can be told.
        const ticket = await gates.admit(provider, message, turn);
        if (typeof ticket === "number") gates.giveBack(provider, message, ticket);
        const { state, openMs, openings, pausedMs } = row;
        gates.adopt({ ...way, state, openMs, openings, pausedMs });
      }
      return gates.admit(provider, message, turn);
    },
  };
}

/** Says what would be granted. */
const lookingLimit = ({ look }: Pick<Limit, "look">): Omit<Limit, "look"> => ({
  async take(asks, { rank }, patienceMs) {
    const keys = asks.map(({ key }) => key);
    const states = new Map((await look(keys)).map((state) => [state.key, state]));
    let longest = { waitMs: 0, key: "" };
    for (const { key, rates } of asks) {
      const state = states.get(key);
      const wait = state ? waitOf(rates, state, rank) : 0;
      if (wait > longest.waitMs) longest = { waitMs: wait, key };
    }
    return longest.waitMs > patienceMs
      ? { isGranted: false, ...longest }
      : { isGranted: true, afterMs: longest.waitMs, isFull: false };
  },
  delay: async () => undefined,
});

/** Behind those who wait already, of the same rank or before it. */
const waitOf = (rates: readonly Rate[], { tats, blockedUntil, lineAt, now }: LimitState, rank: number): number =>
  Math.max(
    0,
    blockedUntil - now,
    ...lineAt.slice(0, rank + 1).map((at) => at - now),
    ...rates.map((rate) => waitMs(tats[PERIODS.indexOf(rate.per)] ?? 0, now, rate)),
  );
