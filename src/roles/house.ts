// Keeps house: chores that come round again.
//
// Each chore has a loop of its own and goes on step by step; steps wait for each other only where there are more of them than
// connections, first come first served. So one with a great deal to do, one that waits for a lock and one that fails keep no other
// waiting. A step that takes too long is ended by the server. What fails is tried again soon at first, then ever more rarely.

import type { Queryable } from "#store/connection/database.ts";
import type { Steps } from "#store/housekeeping.ts";
import { createNap, type Nap } from "#timing/nap.ts";

export type Chore = {
  name: string;
  everyMs: number;
  /** How long one step may take. */
  limitMs: number;
  /** How many rows one step takes at most. */
  size: number;
  /** How loudly it is told what was done. */
  level: "debug" | "info";
  /** The steps, each a statement by `db`, which keeps the limit. */
  begin(db: Queryable, size: number): Steps;
};

export type HouseFacts = {
  /** All its steps are done: how many rows, in how much time. */
  choreKept(chore: Chore, count: number, seconds: number): void;
  choreFailed(chore: Chore, error: unknown): void;
};

export type HouseOptions = {
  chores: readonly Chore[];
  limitedTo: (limitMs: number) => Queryable;
  /** Nothing is done while somebody else leads. */
  leads: () => boolean;
  /** How soon a chore is tried again that failed for the first time, and how often the lead is looked for. */
  retryMs: number;
  facts: HouseFacts;
};

export type House = { wake(): void; stop(): Promise<void> };

type Loop = { nap: Nap; running: Promise<void> };

const MOST_RETRY_MS = 600_000;

export function startHouse({ chores, limitedTo, leads, retryMs, facts }: HouseOptions): House {
  let isStopped = false;

  /** All steps of it; answers with when it comes round again. */
  async function keep(chore: Chore, db: Queryable, failures: number): Promise<{ waitMs: number; hasFailed: boolean }> {
    const startedAt = performance.now();
    let count = 0;
    try {
      for await (const done of chore.begin(db, chore.size)) {
        count += done;
        // What is left stays to do, for us or for whoever leads now.
        if (isStopped || !leads()) return { waitMs: 0, hasFailed: false };
      }
      facts.choreKept(chore, count, (performance.now() - startedAt) / 1000);
      return { waitMs: chore.everyMs, hasFailed: false };
    } catch (error) {
      facts.choreFailed(chore, error);
      return { waitMs: Math.min(MOST_RETRY_MS, retryMs * 2 ** failures), hasFailed: true };
    }
  }

  async function run(chore: Chore, nap: Nap): Promise<void> {
    const db = limitedTo(chore.limitMs);
    let failures = 0;
    let dueAt = Number.NEGATIVE_INFINITY;
    while (!isStopped) {
      const waitMs = leads() ? dueAt - performance.now() : retryMs;
      if (waitMs > 0) {
        await nap.sleep(waitMs);
        nap.wasWoken();
        continue;
      }
      const kept = await keep(chore, db, failures);
      failures = kept.hasFailed ? failures + 1 : 0;
      dueAt = performance.now() + kept.waitMs;
    }
  }

  const loops: Loop[] = chores.map((chore) => {
    const nap = createNap();
    return { nap, running: run(chore, nap) };
  });
  const wake = () => {
    for (const { nap } of loops) nap.wake();
  };
  return {
    wake,
    async stop() {
      isStopped = true;
      wake();
      await Promise.all(loops.map(({ running }) => running));
    },
  };
}
