// Time zones by name, in whatever case: one spelling for each, so that what is kept for a zone is kept once.
//
// A format of Intl takes some 50 kB, and a name of thirty letters has a thousand million spellings.

import type { Fault } from "./problems.ts";

const zones = new Map(Intl.supportedValuesOf("timeZone").map((name) => [name.toLowerCase(), name]));

/**
 * The one spelling of a zone; undefined when there is none of that name. The list holds the main names only; aliases such
 * as UTC or US/Pacific are tried out once. There are a few hundred of them.
 */
export function zoneNamed(name: string): string | undefined {
  const key = name.toLowerCase();
  const known = zones.get(key);
  if (known !== undefined) return known;
  try {
    const zone = new Intl.DateTimeFormat("en", { timeZone: key }).resolvedOptions().timeZone;
    zones.set(key, zone);
    return zone;
  } catch {
    return undefined;
  }
}

export const isTimeZone = (name: string): boolean => zoneNamed(name) !== undefined;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Shows the clocks of a zone; one for each zone there is. */
export function formatOf(timezone: string): Intl.DateTimeFormat {
  const zone = zoneNamed(timezone) ?? timezone;
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, format);
  }
  return format;
}

export const faultsOfTimeZone = (timezone: string): Fault[] =>
  isTimeZone(timezone) ? [] : [{ path: "/timezone", message: "must be a time zone like Europe/Paris" }];
