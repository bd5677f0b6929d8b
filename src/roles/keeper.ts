// The keeper: takes over expired leases, and keeps house.
//
// One leader at a time does it, by a lease in the database; but every action is safe when two take it, so a leader
// that was frozen and wakes up late does no harm. The house is kept beside the sweep, over connections of its own: taking over
// leases waits for no chore.

import type { Queryable } from "#store/connection/database.ts";
import { lead, resign } from "#store/leadership.ts";
import { createNap } from "#timing/nap.ts";
import { type HouseFacts, type HouseOptions, startHouse } from "./house.ts";

export type Running = { stop(): Promise<void> };

export type KeeperFacts = HouseFacts & {
  leads(term: number): void;
  swept(leases: number): void;
  roundFailed(error: unknown): void;
};

export type KeeperOptions = Pick<HouseOptions, "chores" | "limitedTo" | "places"> & {
  db: Queryable;
  holder: string;
  /** Takes over expired leases; answers with how many, up to `count`. */
  sweep: (count: number) => Promise<number>;
  sweepMs: number;
  facts: KeeperFacts;
};

const BATCH = 1_000;

export function startKeeper(options: KeeperOptions): Running {
  const { chores, limitedTo, places, db, holder, sweep, sweepMs, facts } = options;
  const nap = createNap();
  let isStopped = false;
  let term: number | undefined;
  const keeping = startHouse({ chores, limitedTo, places, leads: () => term !== undefined, retryMs: sweepMs, facts });

  async function round(): Promise<void> {
    const now = await lead(db, "keeper", holder, sweepMs * 3);
    const isNew = now !== undefined && term === undefined;
    term = now;
    if (term === undefined) return;
    if (isNew) {
      facts.leads(term);
      keeping.wake();
    }
    let swept = 0;
    for (let done = BATCH; done >= BATCH && !isStopped; swept += done) done = await sweep(BATCH);
    if (swept > 0) facts.swept(swept);
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      await round().catch((error: unknown) => facts.roundFailed(error));
      await nap.sleep(sweepMs);
    }
    await keeping.stop();
    if (term !== undefined) await resign(db, "keeper", holder).catch(() => undefined);
  }

  const running = run();
  return {
    stop() {
      isStopped = true;
      nap.wake();
      void keeping.stop();
      return running;
    },
  };
}
