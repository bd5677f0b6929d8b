// Reminders before an event: which offsets hold, and what is to be sent when.

import { formatDuration, parseDuration, shift } from "./duration.ts";
import { faultsOfNotice, type Notice } from "./notice.ts";
import type { Fault } from "./problems.ts";
import { faultsOfTimeZone } from "./time-zone.ts";

/** What somebody asks for. */
export type ReminderRequest = {
  at: Date;
  timezone: string;
  before: string[] | null;
  scopes: string[];
  notice: Notice;
};

/** Everything that is wrong with it but its texts, by the paths of the body it came in. */
export const faultsOfReminder = ({ timezone, before, notice }: ReminderRequest, now: Date): Fault[] => [
  ...faultsOfTimeZone(timezone),
  ...faultsOfOffsets(before ?? []),
  ...faultsOfNotice(notice, "/notification", now),
];

export const faultsOfOffsets = (before: readonly string[]): Fault[] =>
  before.flatMap((text, n) =>
    parseDuration(text) ? [] : [{ path: `/before/${n}`, message: "must be a duration like P1D or PT1H" }],
  );

/** The name of the offsets that hold where nothing nearer has any. Other scopes look like guild:1. */
export const TENANT_SCOPE = "tenant";

export type Offsets = { before: string[]; from: string };

/** The reminder's own offsets, else those of the nearest scope that has some, else the tenant's. */
export function resolveOffsets(
  own: readonly string[] | null,
  scopes: readonly string[],
  defaults: ReadonlyMap<string, readonly string[]>,
): Offsets {
  if (own) return { before: [...own], from: "reminder" };
  for (const scope of [...scopes, TENANT_SCOPE]) {
    const before = defaults.get(scope);
    if (before && before.length > 0) return { before: [...before], from: scope };
  }
  return { before: [], from: "none" };
}

export type Planned = { before: string; dueAt: Date };

/** One line per offset that lies ahead, the earliest first. Two ways to write the same duration are one. */
export function planOf(at: Date, before: readonly string[], timezone: string, now: Date): Planned[] {
  const planned = new Map<string, Planned>();
  for (const text of before) {
    const duration = parseDuration(text);
    if (!duration) continue;
    const dueAt = shift(at, duration, -1, timezone);
    if (dueAt <= now) continue;
    const canonical = formatDuration(duration);
    planned.set(canonical, { before: canonical, dueAt });
  }
  return [...planned.values()].sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
}
