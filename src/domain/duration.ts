// ISO 8601 durations, and the calendar of a time zone.
//
// Months and days are steps of the calendar: a day before eight o'clock is eight o'clock, also across a change of the
// clocks. Hours and less are exact time. Months end where they end: 31 March less a month is 28 or 29 February.

import { formatOf } from "./time-zone.ts";

/** The three kinds of time that cannot be turned into each other. */
export type Duration = { months: number; days: number; ms: number };

/** Some of the parts in their order, at least one. */
const someOf = (parts: string[]): string =>
  `(${parts.map((part, n) => [part, ...parts.slice(n + 1).map((later) => `(${later})?`)].join("")).join("|")})`;
const dates = someOf(["[0-9]{1,3}Y", "[0-9]{1,4}M", "[0-9]{1,4}W", "[0-9]{1,5}D"]);
const times = someOf(["[0-9]{1,5}H", "[0-9]{1,6}M", "[0-9]{1,8}S"]);
export const DURATION = `^P(${dates}(T${times})?|T${times})$`;

const PARTS = /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;

export function parseDuration(text: string): Duration | undefined {
  const parts = PARTS.exec(text);
  if (!parts || text === "P" || text.endsWith("T")) return undefined;
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0));
  return { months: years * 12 + months, days: weeks * 7 + days, ms: (hours * 3600 + minutes * 60 + seconds) * 1000 };
}

/** The same duration always in the same words: PT90M and PT1H30M are one. */
export function formatDuration({ months, days, ms }: Duration): string {
  const seconds = Math.round(ms / 1000);
  const date = part(Math.floor(months / 12), "Y") + part(months % 12, "M") + part(days, "D");
  const time =
    part(Math.floor(seconds / 3600), "H") + part(Math.floor(seconds / 60) % 60, "M") + part(seconds % 60, "S");
  return date || time ? `P${date}${time && `T${time}`}` : "PT0S";
}

const part = (amount: number, unit: string): string => (amount > 0 ? `${amount}${unit}` : "");

export const isNothing = ({ months, days, ms }: Duration): boolean => months === 0 && days === 0 && ms === 0;

/** `times` durations after (or, if negative, before) an instant, by the clocks of a zone. */
export function shift(at: Date, { months, days, ms }: Duration, times: number, timezone: string): Date {
  if (months === 0 && days === 0) return new Date(at.getTime() + times * ms);
  const local = new Date(at.getTime() + offsetMs(at.getTime(), timezone));
  const target = new Date(local);
  target.setUTCDate(1);
  target.setUTCMonth(target.getUTCMonth() + times * months);
  const lastDay = new Date(Date.UTC(target.getUTCFullYear(), target.getUTCMonth() + 1, 0)).getUTCDate();
  target.setUTCDate(Math.min(local.getUTCDate(), lastDay) + times * days);
  return new Date(instantOf(target.getTime(), timezone) + times * ms);
}

/** The instant at which a zone's clocks show `localMs`. In the hour that is skipped, the clocks before it count. */
function instantOf(localMs: number, timezone: string): number {
  // The offset a day before and a day after: the only two that can hold here.
  const before = offsetMs(localMs - 86_400_000, timezone);
  const after = offsetMs(localMs + 86_400_000, timezone);
  const early = localMs - before;
  if (before === after || offsetMs(early, timezone) === before) return early;
  const late = localMs - after;
  return offsetMs(late, timezone) === after ? late : early;
}

/** How far a zone's clocks are ahead of UTC. */
export function offsetMs(at: number, timezone: string): number {
  if (timezone === "UTC") return 0;
  const shown: { [part: string]: number } = {};
  for (const { type, value } of formatOf(timezone).formatToParts(at)) shown[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
  const local = Date.UTC(year, month - 1, day, hour, minute, second);
  return local - Math.floor(at / 1000) * 1000;
}
