// Keeps house: chores that come round again.
//
// Each chore has a loop of its own and goes on step by step; steps wait for each other only where there are more of them than
// connections, and whoever waits has not failed. So one with a great deal to do, one that waits for a lock and one that fails make
// no other fail, and let it have its turn after a step. A step that takes too long is ended by the server, and the next one takes fewer
// rows. What fails is tried again soon at first, then ever more rarely.

import { isTooSlow, type Queryable } from "#store/connection/database.ts";
import type { Steps } from "#store/housekeeping.ts";
import { createNap, type Nap } from "#timing/nap.ts";
import { createPlaces } from "./places.ts";

export type Chore = {
  name: string;
  /** Somebody waits for what it does: there is a place that those which nobody waits for do not take. */
  isUrgent: boolean;
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
  /** How many steps are under way at once. */
  places: number;
  /** Nothing is done while somebody else leads. */
  leads: () => boolean;
  /** How soon a chore is tried again that failed for the first time, and how often the lead is looked for. */
  retryMs: number;
  facts: HouseFacts;
};

export type House = { wake(): void; stop(): Promise<void> };

type Loop = { nap: Nap; running: Promise<void> };

const MOST_RETRY_MS = 600_000;
/** A step that was cut off takes half as many rows next time, down to a sixteenth: fewer would not end a large arrear. */
const MOST_HALVINGS = 4;

/** What became of all steps of a chore. */
type Kept = { waitMs: number; failure: "none" | "cut off" | "other" };

export function startHouse({ chores, limitedTo, places: most, leads, retryMs, facts }: HouseOptions): House {
  const places = createPlaces(most);
  let isStopped = false;

  /** All steps of it, `size` rows each. */
  async function keep(chore: Chore, db: Queryable, size: number, failures: number): Promise<Kept> {
    const startedAt = performance.now();
    const steps = chore.begin(db, size);
    let count = 0;
    try {
      for (;;) {
        // What is left stays to do, for us or for whoever leads now.
        const step = await places.take(chore.isUrgent, async () => (isStopped || !leads() ? undefined : steps.next()));
        if (!step) return { waitMs: 0, failure: "none" };
        if (step.done) break;
        count += step.value;
      }
      facts.choreKept(chore, count, (performance.now() - startedAt) / 1000);
      return { waitMs: chore.everyMs, failure: "none" };
    } catch (error) {
      facts.choreFailed(chore, error);
      const waitMs = Math.min(MOST_RETRY_MS, retryMs * 2 ** failures);
      return { waitMs, failure: wasCutOff(error) ? "cut off" : "other" };
    } finally {
      // Left before its end, it lets go of what it holds.
      await steps.return();
    }
  }

  async function run(chore: Chore, nap: Nap): Promise<void> {
    const db = limitedTo(chore.limitMs);
    let failures = 0;
    let halvings = 0;
    let dueAt = Number.NEGATIVE_INFINITY;
    while (!isStopped) {
      const waitMs = leads() ? dueAt - performance.now() : retryMs;
      if (waitMs > 0) {
        await nap.sleep(waitMs);
        nap.wasWoken();
        continue;
      }
      const kept = await keep(chore, db, Math.ceil(chore.size / 2 ** halvings), failures);
      failures = kept.failure === "none" ? 0 : failures + 1;
      if (kept.failure === "none") halvings = 0;
      else if (kept.failure === "cut off") halvings = Math.min(MOST_HALVINGS, halvings + 1);
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

/** The step itself, or the first of several that were told of together. */
const wasCutOff = (error: unknown): boolean => isTooSlow(error) || (error instanceof Error && isTooSlow(error.cause));
