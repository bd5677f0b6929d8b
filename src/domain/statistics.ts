// What statistics can be asked for: a range of time, in steps, grouped by some of what tallies know.

import type { Fault } from "./problems.ts";

/** Of what tallies are kept in. */
export const GRAINS = ["minute", "hour", "day"] as const;
export type Grain = (typeof GRAINS)[number];
/** For how long each is kept. What is coarser has counted the same. */
export const KEPT_DAYS: Readonly<Record<Grain, number>> = { minute: 2, hour: 62, day: 800 };

export const GROUPS = ["tenant", "channel", "priority", "provider", "status", "outcome"] as const;
export type Group = (typeof GROUPS)[number];

/** What is counted, by what it came to. */
export const COUNTED = [
  "accepted",
  "attempts",
  "sent",
  "delivered",
  "failed",
  "expired",
  "suppressed",
  "ambiguous",
  "cancelled",
  "retrying",
  "postponed",
  "retried",
] as const;
export type Counted = (typeof COUNTED)[number];

/** Of what waits, so much is counted one by one: a few milliseconds. */
export const MOST_WAITING = 10_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
export const GRAIN_MS: Readonly<Record<Grain, number>> = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS };

export const STEPS = ["PT1M", "PT5M", "PT15M", "PT1H", "PT6H", "P1D"] as const;
export type Step = (typeof STEPS)[number];
const STEP_MS: Readonly<Record<Step, number>> = {
  PT1M: MINUTE_MS,
  PT5M: 5 * MINUTE_MS,
  PT15M: 15 * MINUTE_MS,
  PT1H: HOUR_MS,
  PT6H: 6 * HOUR_MS,
  P1D: DAY_MS,
};

export const MOST_STEPS = 500;
/** What a range without steps is put together from. */
const MOST_GRAINS = 1_500;
const USUAL_STEPS = 60;

export type Asked = { since?: string; until?: string; step?: Step };
/** Both ends are where a step, or a grain, begins. Without `stepMs` it is one line for all of it. */
export type Range = { grain: Grain; since: Date; until: Date; stepMs: number | undefined };

/** The range that is counted, or what is wrong with what was asked for. */
export function rangeOf(asked: Asked, now: Date): Range | Fault[] {
  const stepMs = asked.step && STEP_MS[asked.step];
  const end = asked.until === undefined ? now.getTime() : Date.parse(asked.until);
  const start = asked.since === undefined ? end - (stepMs ?? MINUTE_MS) * USUAL_STEPS : Date.parse(asked.since);
  if (end <= start) return [{ path: "/until", message: "must be after since" }];
  const isKept = (grain: Grain) => start >= now.getTime() - KEPT_DAYS[grain] * DAY_MS;
  const grain =
    stepMs === undefined
      ? (GRAINS.find((one) => isKept(one) && (end - start) / GRAIN_MS[one] <= MOST_GRAINS) ?? "day")
      : (GRAINS.findLast((one) => GRAIN_MS[one] <= stepMs) ?? "minute");
  const size = stepMs ?? GRAIN_MS[grain];
  const since = Math.floor(start / size) * size;
  const until = Math.ceil(end / size) * size;
  const faults: Fault[] = [];
  if (!isKept(grain))
    faults.push({
      path: "/since",
      message: `must not be further back than ${grain}s are kept: ${KEPT_DAYS[grain]} days`,
    });
  if (stepMs !== undefined && (until - since) / stepMs > MOST_STEPS)
    faults.push({ path: "/step", message: `must not make more than ${MOST_STEPS} steps of the range` });
  return faults.length > 0 ? faults : { grain, since: new Date(since), until: new Date(until), stepMs };
}
