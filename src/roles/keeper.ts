// The keeper: takes over expired leases, ends what has expired, and keeps house.
//
// One leader at a time does it, by a lease in the database; but every action is safe when two take it, so a leader
// that was frozen and wakes up late does no harm. The house is kept beside the sweep: taking over leases waits for no chore.

import { applyReports, forgetReports } from "#record/reports.ts";
import type { Queryable } from "#store/connection/database.ts";
import { purgeDevices } from "#store/devices.ts";
import { expireWaiting } from "#store/expire.ts";
import { forgetExpiredKeys, forgetPast, inBatches, makePartitions, retire, type Steps } from "#store/housekeeping.ts";
import { deliverAcked, forgetItems } from "#store/inbox.ts";
import { lead, resign } from "#store/leadership.ts";
import { buryWorkers } from "#store/workers.ts";
import type { Logger } from "#telemetry/log.ts";
import { createNap } from "#timing/nap.ts";
import { type Chore, startHouse } from "./house.ts";

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
const HOUR_MS = 3_600_000;

export function startKeeper(options: KeeperOptions): Running {
  const { db, holder, sweep, sweepMs, onSwept, log } = options;
  const nap = createNap();
  let isStopped = false;
  let term: number | undefined;
  const house = startHouse({ chores: choresOf(options), leads: () => term !== undefined, retryMs: sweepMs, log });

  async function round(): Promise<void> {
    const now = await lead(db, "keeper", holder, sweepMs * 3);
    const isNew = now !== undefined && term === undefined;
    term = now;
    if (term === undefined) return;
    if (isNew) {
      log.info({ term }, "leads the keepers");
      house.wake();
    }
    let swept = 0;
    for (let done = BATCH; done >= BATCH && !isStopped; swept += done) done = await sweep(BATCH);
    if (swept === 0) return;
    log.warn({ swept }, "took over expired leases");
    onSwept(swept);
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      await round().catch((error: unknown) => log.warn({ err: error }, "the keeper's round failed"));
      await nap.sleep(sweepMs);
    }
    await house.stop();
    if (term !== undefined) await resign(db, "keeper", holder).catch(() => undefined);
  }

  const running = run();
  return {
    stop() {
      isStopped = true;
      nap.wake();
      void house.stop();
      return running;
    },
  };
}

function choresOf({ db, sweepMs, silentMs, retentionDays }: KeeperOptions): Chore[] {
  const often = (name: string, act: (count: number) => Promise<number>): Chore => ({
    name,
    everyMs: sweepMs,
    level: "debug",
    begin: () => inBatches(BATCH, act),
  });
  const hourly = (name: string, begin: () => Steps): Chore => ({ name, everyMs: HOUR_MS, level: "info", begin });
  const forget = (name: string, act: (count: number) => Promise<number>): Chore =>
    hourly(name, () => inBatches(BATCH, act));
  return [
    often("expire", (count) => expireWaiting(db, count)),
    // Reports that outran our own commit find their receipts now.
    often("reports", (count) => applyReports(db, count)),
    // Readers of inboxes may be as fast.
    often("acks", async (count) => (await deliverAcked(db, undefined, count)).moved),
    often("workers", () => buryWorkers(db, silentMs)),
    hourly("partitions", () => makePartitions(db)),
    forget("keys", (count) => forgetExpiredKeys(db, count)),
    hourly("retention", () => retire(db, retentionDays, BATCH)),
    forget("past", (count) => forgetPast(db, retentionDays, count)),
    forget("old reports", (count) => forgetReports(db, retentionDays, count)),
    forget("devices", (count) => purgeDevices(db, retentionDays, count)),
    forget("inbox items", (count) => forgetItems(db, retentionDays, count)),
  ];
}
