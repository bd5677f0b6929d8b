// How much of each limit is in use, for people.

import { burstOf, type LimitState, PERIODS, type Period, type Rate, roomAt } from "#domain/gcra.ts";

export type Use = { per: Period; most: number; burst: number; room?: number; waitMs?: number };

/** Without a state, only what is set: there is a key for each recipient. */
export function useOf(rates: readonly Rate[] = [], state?: LimitState | "unused"): Use[] {
  return rates.map((rate) => {
    const use: Use = { per: rate.per, most: rate.most, burst: burstOf(rate) };
    if (state === undefined) return use;
    if (state === "unused") return { ...use, room: use.burst };
    const { tats, blockedUntil, lineAt, now } = state;
    const room = blockedUntil > now ? 0 : roomAt(tats[PERIODS.indexOf(rate.per)] ?? 0, now, rate);
    const waitMs = Math.round(Math.max(0, blockedUntil - now, ...lineAt.map((at) => at - now)));
    return { ...use, room, ...(waitMs > 0 && { waitMs }) };
  });
}
