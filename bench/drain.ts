// Fills a store with jobs and measures how fast workers empty it.

import type { Adapter } from "./adapters/adapter.ts";
import { machineNow } from "./payload.ts";
import type { WorkerPool } from "./worker-pool.ts";

const BATCH = 1000;
const FILLERS = 2;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function fill(adapter: Adapter, jobs: number): Promise<void> {
  const producer = await adapter.open();
  await producer.batch(jobs, 1)();
  await inBatches(jobs, (from, size) => producer.batch(from, size)());
  await producer.close();
}

/** Two calls under way, a thousand jobs each. */
export async function inBatches(jobs: number, call: (from: number, size: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const line = async () => {
    while (next < jobs) {
      const from = next;
      next += BATCH;
      await call(from, Math.min(BATCH, jobs - from));
    }
  };
  await Promise.all(Array.from({ length: FILLERS }, line));
}

/**
 * Jobs per second until `jobs` have been begun and, with `untilEmpty`, the store holds none. The clock starts when a
 * tenth has been begun, so that neither start-up nor a first large prefetch counts for or against anybody.
 */
export async function drain(
  pool: WorkerPool,
  jobs: number,
  untilEmpty: (() => Promise<number>) | undefined,
): Promise<number> {
  await pool.go();
  while (pool.count() < jobs / 10) await pause(1);
  const before = { count: pool.count(), at: pool.lastAt() };
  while (pool.count() < jobs) await pause(2);
  const done = pool.count() - before.count;
  let endAt = pool.lastAt();
  if (untilEmpty) {
    while ((await untilEmpty()) > 0) await pause(2);
    endAt = machineNow();
  }
  return done / ((endAt - before.at) / 1000);
}
