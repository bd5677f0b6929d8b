// The part of the configuration that says how a worker goes about its work.

import { EXCHANGES, type Exchanges } from "#domain/exchange.ts";
import { PRIORITIES, type Priority } from "#domain/priority.ts";
import { isObject, readInteger, type SettingsOf } from "./setting.ts";

export type DeliveryConfig = {
  /** Notifications a worker claims at once. */
  batchSize: number;
  /** What one tenant sends at once through one way, when nobody else does. */
  concurrency: number;
  /** The same of callbacks, which have a worker of their own beside it; 0: none here. */
  callbackConcurrency: number;
  /** Of a worker's slots, in percent: what one way has while others are at work. */
  wayPercent: number;
  leaseMs: number;
  sweepMs: number;
  pollMs: Readonly<{ [lane in Priority]: number }>;
  /** Where a request names no number. Undefined: by channel. */
  maxAttempts: number | undefined;
  sendTimeoutMs: number;
  /** Of which attempts the record keeps what went over the wire. */
  exchanges: Exchanges;
};

export const DELIVERY: SettingsOf<DeliveryConfig> = {
  batchSize: {
    env: "CARILLON_BATCH_SIZE",
    expected: "a whole number from 100 to 1000",
    // From 100 to 500 the rate nearly doubles; a larger claim also walks past dead rows less often.
    fallback: 1000,
    read: readInteger(100, 1000),
  },
  concurrency: {
    env: "CARILLON_CONCURRENCY",
    expected: "a whole number from 1 to 10000",
    // 200 sends at 20 ms each are 10,000 a second.
    fallback: 200,
    read: readInteger(1, 10_000),
  },
  callbackConcurrency: {
    env: "CARILLON_CALLBACK_CONCURRENCY",
    expected: "a whole number from 0 to 10000",
    // A receiver of 20 ms gets its sixteen at a time, and five others too.
    fallback: 100,
    read: readInteger(0, 10_000),
  },
  wayPercent: {
    env: "CARILLON_WAY_PERCENT",
    expected: "a whole number from 1 to 100",
    fallback: 25,
    read: readInteger(1, 100),
  },
  leaseMs: {
    env: "CARILLON_LEASE_MS",
    expected: "milliseconds from 1000 to 3600000",
    fallback: 30_000,
    read: readInteger(1_000, 3_600_000),
  },
  sweepMs: {
    env: "CARILLON_SWEEP_MS",
    expected: "milliseconds from 100 to 60000",
    fallback: 5_000,
    read: readInteger(100, 60_000),
  },
  pollMs: {
    env: "CARILLON_POLL_MS",
    expected: "milliseconds from 10 to 60000, in the file also one for each lane",
    fallback: { urgent: 1_000, high: 1_000, normal: 1_000, low: 1_000 },
    read: readPolls,
  },
  maxAttempts: {
    env: "CARILLON_MAX_ATTEMPTS",
    expected: "a whole number from 1 to 100",
    fallback: undefined,
    read: readInteger(1, 100),
  },
  sendTimeoutMs: {
    env: "CARILLON_SEND_TIMEOUT_MS",
    expected: "milliseconds from 100 to 600000",
    fallback: 10_000,
    read: readInteger(100, 600_000),
  },
  exchanges: {
    env: "CARILLON_EXCHANGES",
    expected: "off, failures or all",
    fallback: "failures",
    read: (given) => EXCHANGES.find((known) => known === given),
  },
};

function readPolls(given: unknown): DeliveryConfig["pollMs"] | undefined {
  const read = readInteger(10, 60_000);
  const one = read(given);
  const lanes: { [lane: string]: unknown } = isObject(given) ? given : {};
  if (one === undefined && !isObject(given)) return undefined;
  const polls = PRIORITIES.map((lane) => [lane, one ?? read(lanes[lane] ?? 1_000)] as const);
  const isKnown = Object.keys(lanes).every((lane) => PRIORITIES.some((known) => known === lane));
  if (!isKnown || polls.some(([, ms]) => ms === undefined)) return undefined;
  return Object.fromEntries(polls) as DeliveryConfig["pollMs"];
}
