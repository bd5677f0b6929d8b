// When a recurring schedule fires: by a cron expression, or every so often from a first instant on.

import { Cron } from "croner";
import { type Duration, isNothing, parseDuration, shift } from "./duration.ts";
import { faultsOfNotice, type Notice } from "./notice.ts";
import type { Fault } from "./problems.ts";
import { faultsOfTimeZone, isTimeZone, zoneNamed } from "./time-zone.ts";

export type Schedule = {
  cron: string | null;
  /** An ISO duration. */
  every: string | null;
  timezone: string;
  /** Ticks of `every` are counted from here; no tick comes before it. */
  from: Date;
  /** No tick comes after it. */
  until: Date | null;
};

export const CATCH_UPS = ["once", "skip"] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

/** What somebody asks for. Without `from` it is counted from now, or from where it was counted before. */
export type ScheduleRequest = Omit<Schedule, "from"> & { from: Date | undefined; catchUp: CatchUp; notice: Notice };

/** A tick found this long after its time was missed: nobody was there to fire it. */
export const MISSED_MS = 60_000;

/** The first tick after `after`; undefined when there is none any more. */
export function nextTick(schedule: Schedule, after: Date): Date | undefined {
  const { cron, every, timezone, from, until } = schedule;
  const floor = after < from ? new Date(from.getTime() - 1) : after;
  const tick = cron !== null ? cronTick(cron, timezone, floor) : everyTick(every ?? "", timezone, from, floor);
  return tick && until && tick > until ? undefined : tick;
}

export function nextTicks(schedule: Schedule, after: Date, count: number): Date[] {
  const ticks: Date[] = [];
  for (let tick = nextTick(schedule, after); tick && ticks.length < count; tick = nextTick(schedule, tick)) {
    ticks.push(tick);
  }
  return ticks;
}

/** Everything that is wrong with it but its texts, by the paths of the body it came in. */
export function faultsOfSchedule({ cron, every, timezone, from, until, notice }: ScheduleRequest, now: Date): Fault[] {
  const faults = faultsOfTimeZone(timezone);
  const add = (path: string, message: string | undefined) => {
    if (message !== undefined) faults.push({ path, message });
  };
  if (cron !== null && isTimeZone(timezone)) add("/cron", faultOfCron(cron, timezone, now));
  if (every !== null) add("/every", faultOfEvery(every));
  if (until && until <= (from ?? now)) add("/until", from ? "must be after from" : "must be in the future");
  return [...faults, ...faultsOfNotice(notice, "/notification", now)];
}

/** Why a cron expression cannot be used; undefined when it can. */
export function faultOfCron(cron: string, timezone: string, now: Date): string | undefined {
  try {
    return cronTick(cron, timezone, now) ? undefined : "must come true some day";
  } catch (error) {
    return `must be a cron expression (${error instanceof Error ? error.message : error})`;
  }
}

export function faultOfEvery(every: string): string | undefined {
  const duration = parseDuration(every);
  if (!duration || isNothing(duration)) return "must be a duration like PT15M, P1D or P1M";
  if (duration.months > 0 || duration.days > 0) return undefined;
  return duration.ms < 1_000 ? "must be a second at least" : undefined;
}

function cronTick(cron: string, timezone: string, after: Date): Date | undefined {
  // croner keeps a format for every spelling it was ever given.
  return new Cron(cron, { timezone: zoneNamed(timezone) ?? timezone, paused: true }).nextRun(after) ?? undefined;
}

const ROUGH_MONTH_MS = 30.436875 * 86_400_000;

function everyTick(every: string, timezone: string, from: Date, after: Date): Date | undefined {
  const duration = parseDuration(every);
  if (!duration || isNothing(duration)) return undefined;
  // A guess that may be off by a few, since months and days differ in length; then step to the right one.
  const guess = Math.floor((after.getTime() - from.getTime()) / roughMs(duration));
  let n = Math.max(0, guess - 2);
  let tick = shift(from, duration, n, timezone);
  while (tick <= after) tick = shift(from, duration, ++n, timezone);
  return tick;
}

const roughMs = ({ months, days, ms }: Duration): number => months * ROUGH_MONTH_MS + days * 86_400_000 + ms;

/**
 * What to do about a tick that is due. Ticks that passed unnoticed fire once, for the last of them, or not at all.
 * Undefined for `fires` means nothing is sent; `skipped` counts the ticks that nobody will ever see.
 */
export function judgeTick(
  schedule: Schedule,
  catchUp: CatchUp,
  tick: Date,
  now: Date,
): { fires: Date | undefined; skipped: number; next: Date | undefined } {
  let last = tick;
  let passed = 1;
  let next = nextTick(schedule, tick);
  // Years of ticks every second may have passed: count some, then jump.
  for (; next && next <= now && passed < 1_000; passed++) {
    last = next;
    next = nextTick(schedule, next);
  }
  if (next && next <= now) next = nextTick(schedule, now);
  const isMissed = now.getTime() - last.getTime() > MISSED_MS;
  const fires = isMissed && catchUp === "skip" ? undefined : last;
  return { fires, skipped: fires ? passed - 1 : passed, next };
}
