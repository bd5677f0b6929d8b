// Limits as arithmetic: GCRA, the generic cell rate algorithm.
//
// One number per limit, the theoretical arrival time, says all: there is no window whose boundary could be used twice. The
// interval between two is chosen so that burst and steady rate together stay within `most`: in no stretch of that length,
// wherever it begins, are there more. A larger burst therefore costs steady rate.

export const PERIODS = ["second", "minute", "hour", "day"] as const;
export type Period = (typeof PERIODS)[number];

/** At most `most` in any stretch of one such period; `burst` of them may come at once. */
export type Rate = { per: Period; most: number; burst?: number };

export const PERIOD_MS: { readonly [period in Period]: number } = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** A twentieth keeps 95 % for the steady rate. */
const BURST_SHARE = 20;
/** What is taken ahead is used up within about this time at the full rate. */
const BLOCK_MS = 20;

export const burstOf = ({ most, burst }: Rate): number => burst ?? Math.max(1, Math.floor(most / BURST_SHARE));

/** Half-open stretches: the one that begins a period later is not within it. */
export const intervalMs = (rate: Rate): number => PERIOD_MS[rate.per] / (rate.most - burstOf(rate) + 1);

/** How long `n` have to wait at `now`; 0 when they may go. */
export const waitMs = (tat: number, now: number, rate: Rate, n = 1): number =>
  Math.max(0, tat + (n - burstOf(rate)) * intervalMs(rate) - now);

/** The arrival time after `n` were let go at `now`. */
export const after = (tat: number, now: number, rate: Rate, n = 1): number => Math.max(tat, now) + n * intervalMs(rate);

/** How many could go at once. */
export const roomAt = (tat: number, now: number, rate: Rate): number =>
  Math.max(0, Math.floor(burstOf(rate) - Math.max(0, tat - now) / intervalMs(rate) + 1e-9));

/** How many to take at once where all of these hold: never more than a burst, and 1 where the rate is low. */
export const blockOf = (rates: readonly Rate[]): number =>
  Math.max(1, Math.min(...rates.map((rate) => Math.min(burstOf(rate), Math.floor(BLOCK_MS / intervalMs(rate))))));

/** How a key stands: arrival times by period, until when the provider wants nothing, and by rank the last instant that was given to those who wait. */
export type LimitState = { key: string; tats: number[]; blockedUntil: number; lineAt: number[]; now: number };
