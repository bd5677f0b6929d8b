// What is sent: the same amount of JSON for everybody, 300 bytes.

import type { NotificationRequest } from "../src/domain/notification.ts";

const READING_MS = 20;
const COUNTER_FROM = 1_000_000;
const PEER_FILLER = "x".repeat(183);
const NOTIFICATION_FILLER = "x".repeat(126);

/** Seven digits whatever i is, so that every payload has the same length. */
const counter = (i: number): number => COUNTER_FROM + i;

/** The clock that all processes of a machine share, in milliseconds. */
export const machineNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/** An instant to come: on the wall clock, which schedules are told, and on the machine's. */
export type Due = {
  wallMs: number;
  /** Travels with the job; 0 where lateness is not measured. */
  at: number;
};

/** Answers with instants by the machine's clock. Not for long: the wall clock is corrected now and then, the other is not. */
export function createDues(): (at: number) => Due {
  // Date.now() leaves out what is less than a millisecond, and we may be interrupted between the two readings: both make the
  // difference too small, so the largest of many is the true one.
  let aheadMs = Number.NEGATIVE_INFINITY;
  const until = machineNow() + READING_MS;
  while (machineNow() < until) aheadMs = Math.max(aheadMs, Date.now() - machineNow());
  return (at) => {
    const wallMs = Math.ceil(at + aheadMs);
    return { wallMs, at: wallMs - aheadMs };
  };
}

/** A job among others that differ from it. */
export type MixedJob = {
  /** When it was handed over, where its wait is measured; else 0. */
  at: number;
  /** How long its handler, or its send, takes. */
  takesMs: number;
  isUrgent: boolean;
  /** Whose it is; the default tenant's unless given. */
  tenant?: string;
  /** For later; only ours are asked to. */
  dueMs?: number;
};

/** A job of the peers. `at` is when it was handed over, where latency is measured. */
export function payload(i: number, at = 0, takesMs = 0): { id: number; at: number; takesMs?: number } {
  return {
    id: counter(i),
    at,
    ...(takesMs > 0 && { takesMs }),
    tenant: "tenant-0042",
    channel: "email",
    to: "someone@example.com",
    subject: "Hello",
    body: PEER_FILLER,
  } as { id: number; at: number };
}

/** The same as a notification. */
export function notification(i: number, at = 0, takesMs = 0): NotificationRequest {
  return {
    channel: "email",
    recipient: { email: "someone@example.com" },
    content: { subject: "Your order is on its way", textBody: NOTIFICATION_FILLER },
    metadata: { tenant: "tenant-0042", n: counter(i), ...(at > 0 && { at }), ...(takesMs > 0 && { takesMs }) },
  };
}
