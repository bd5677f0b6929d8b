// What happened to a notification, as it is told to those who follow: one list of words for the feed, callbacks and filters.
//
// A fact is named after what it came to, and most follow from an event of the record: an attempt is told as what it led to, a bounce as a failure.

import type { Channel } from "./notification.ts";
import type { Priority } from "./priority.ts";
import type { Status } from "./status.ts";

/** In the order of their numbers in the feed, from 1 on: only ever added to. carillon.fact_type() has the same. */
export const FACT_TYPES = [
  "accepted",
  "retrying",
  "postponed",
  "sent",
  "delivered",
  "failed",
  "expired",
  "suppressed",
  "ambiguous",
  "cancelled",
  "retried",
  "rescheduled",
  /** An item of an inbox was read, for the first time. In the feed alone. */
  "read",
  "reminder.due",
] as const;
export type FactType = (typeof FACT_TYPES)[number];

export type Fact = {
  position: Position;
  type: FactType;
  at: Date;
  tenant: number;
  notificationId: string;
  /** Grows from fact to fact of a notification; `accepted` is 0. Of events it is their number in the record. */
  number: number;
};

/** What the record says of a fact besides; null where there is nothing to say. All is, once the record has been forgotten. */
export type FactDetail = {
  event: string | null;
  from: Status | null;
  to: Status | null;
  attempt: number | null;
  provider: string | null;
  outcome: string | null;
  error: string | null;
  latencyMs: number | null;
  cost: number | null;
  detail: { [name: string]: unknown } | null;
  channel: Channel | null;
  priority: Priority | null;
  userId: string | null;
  acceptedAt: Date | null;
};

/** The same for a fact wherever and however often it is told. */
export const factId = ({ notificationId, number }: Pick<Fact, "notificationId" | "number">): string =>
  `${notificationId}:${number}`;

/**
 * How far somebody has followed: all rows of the feed before (key, seq) of an epoch, and of that row so many facts. A key is the id of a
 * transaction.
 */
export type Position = { epoch: number; key: number; seq: number; ordinal: number };

/** Before everything that is kept of an epoch. */
export const startOf = (epoch: number): Position => ({ epoch, key: 0, seq: 0, ordinal: 0 });

export const writtenPosition = ({ epoch, key, seq, ordinal }: Position): string => `${epoch}:${key}:${seq}:${ordinal}`;

/** Undefined when the text was never one of our positions. */
export function readPosition(text: string): Position | undefined {
  const found = /^(\d{1,9}):(\d{1,15}):(\d{1,15}):(\d{1,9})$/.exec(text);
  if (!found) return undefined;
  const [epoch = 0, key = 0, seq = 0, ordinal = 0] = found.slice(1).map(Number);
  return { epoch, key, seq, ordinal };
}

/** Negative where the first comes before the second. */
export const comparePositions = (a: Position, b: Position): number =>
  a.epoch - b.epoch || a.key - b.key || a.seq - b.seq || a.ordinal - b.ordinal;
