// What the parts have in common: jobs for later, and how late they began.

import type { Producer } from "../../adapters/adapter.ts";
import { inBatches } from "../../drain.ts";
import { type Due, machineNow } from "../../payload.ts";
import type { Figures } from "../../scenario.ts";
import { quantile } from "../../statistics.ts";

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** At its best where jobs have to begin on time; bench/README.md gives the reasons. */
export const PUNCTUAL: Readonly<Record<string, string>> = {
  carillon: "defaults, all roles, full record",
  "graphile-worker": "24 jobs without local queue, each polling every 10 ms",
  "pg-boss": "batchSize 100, polling every 500 ms, its least",
  BullMQ: "concurrency 200; Redis hz 100",
};

/** Jobs number `from` to `to` wait for days to come, one a second. The first call makes what the store needs. */
export async function fillFarLater(producer: Producer, from: number, to: number): Promise<void> {
  const startMs = Date.now() + 2 * DAY_MS;
  const far = (i: number): Due => ({ wallMs: startMs + i * SECOND_MS, at: 0 });
  await producer.later(from, far(from));
  await inBatches(to - from - 1, (skipped, size) => {
    const first = from + 1 + skipped;
    return producer.batchLater(
      first,
      Array.from({ length: size }, (_, k) => far(first + k)),
    );
  });
}

/** Time to hand over so many before the first is due, with the slowest of all in mind. */
export const leadMs = (jobs: number): number => 5_000 + jobs * 0.4;

/** Hands them over; fails when that took until the first of them was nearly due. */
export async function handOver(producer: Producer, dues: readonly Due[], firstAt: number): Promise<void> {
  await inBatches(dues.length, (from, size) => producer.batchLater(from, dues.slice(from, from + size)));
  if (machineNow() > firstAt - SECOND_MS) throw new Error("handing over took too long: the first are already due");
}

export const latenessOf = (values: readonly number[]): Figures => ({
  p50Ms: quantile(values, 0.5),
  p99Ms: quantile(values, 0.99),
  maxMs: Math.max(...values),
  // Below zero, if anybody began early.
  minMs: Math.min(...values),
});
