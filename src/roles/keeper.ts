// The keeper: takes over expired leases, ends what has expired, and keeps house.
//
// One leader at a time does it, by a lease in the database; but every action is safe when two take it, so a leader
// that was frozen and wakes up late does no harm.

import type { Queryable } from "../store/database.ts";
import { purgeDevices } from "../store/devices.ts";
import { expireWaiting } from "../store/expire.ts";
import { forgetExpiredKeys, forgetPast, makePartitions, retire } from "../store/housekeeping.ts";
import { deliverAcked, forgetItems } from "../store/inbox.ts";
import { lead, resign } from "../store/leadership.ts";
import { applyReports, forgetReports } from "../store/reports.ts";
import { buryWorkers } from "../store/workers.ts";
import type { Logger } from "../telemetry/log.ts";
import { createNap } from "./nap.ts";

export type Running = { stop(): Promise<void> };

export type KeeperOptions = {
  db: Queryable;
  holder: string;
  /** Takes over expired leases; answers with how many, up to `count`. */
  sweep: (count: number) => Promise<number>;
  sweepMs: number;
  /** A worker silent for this long is gone. */
  silentMs: number;
  retentionDays: number;
  onSwept: (leases: number) => void;
  log: Logger;
};

const BATCH = 1_000;
const HOUSE_MS = 3_600_000;

export function startKeeper(options: KeeperOptions): Running {
  const { db, holder, sweep, sweepMs, silentMs, retentionDays, onSwept, log } = options;
  const nap = createNap();
  let isStopped = false;
  let keptHouseAt = Number.NEGATIVE_INFINITY;
  let term: number | undefined;

  async function round(): Promise<void> {
    const now = await lead(db, "keeper", holder, sweepMs * 3);
    if (now !== undefined && term === undefined) log.info({ term: now }, "leads the keepers");
    term = now;
    if (term === undefined) return;
    const swept = await all(sweep);
    if (swept > 0) {
      log.warn({ swept }, "took over expired leases");
      onSwept(swept);
    }
    const expired = await all((count) => expireWaiting(db, count));
    if (expired > 0) log.info({ expired }, "ended what waited past its time");
    // Reports that outran our own commit find their receipts now.
    await all((count) => applyReports(db, count));
    // Readers of inboxes may be as fast.
    await all(async (count) => (await deliverAcked(db, undefined, count)).moved);
    await buryWorkers(db, silentMs);
    if (performance.now() - keptHouseAt < HOUSE_MS) return;
    keptHouseAt = performance.now();
    const partitions = await makePartitions(db);
    const keys = await all((count) => forgetExpiredKeys(db, count));
    const retired = await retire(db, retentionDays);
    const past =
      (await all((count) => forgetPast(db, retentionDays, count))) +
      (await all((count) => forgetReports(db, retentionDays, count))) +
      (await all((count) => purgeDevices(db, retentionDays, count))) +
      (await all((count) => forgetItems(db, retentionDays, count)));
    if (partitions + keys + retired + past > 0) log.info({ partitions, keys, retired, past }, "kept house");
  }

  /** Batch after batch, until one is not full. */
  async function all(act: (count: number) => Promise<number>): Promise<number> {
    let total = 0;
    for (let done = BATCH; done >= BATCH && !isStopped; total += done) done = await act(BATCH);
    return total;
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      await round().catch((error: unknown) => log.warn({ err: error }, "the keeper's round failed"));
      await nap.sleep(sweepMs);
    }
    if (term !== undefined) await resign(db, "keeper", holder).catch(() => undefined);
  }

  const running = run();
  return {
    stop() {
      isStopped = true;
      nap.wake();
      return running;
    },
  };
}
