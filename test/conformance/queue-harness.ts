// What the conformance suite needs to see of an engine besides its contract. Each engine brings its own.

import { after, before, beforeEach } from "node:test";
import type pg from "pg";
import type { Attempt, Ended, Settlement } from "#domain/attempt.ts";
import type { Priority } from "#domain/priority.ts";
import type { Depth, Queue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";

export type QueueHarness = {
  queue: Queue;
  /** The same queue, as another process has it. */
  another: Queue;
  /** For the verbs that take a connection. */
  db: Queryable;
  /** The same, where there is a database. */
  pool: pg.Pool;
  /** Accepts one notification per priority given, in that order, of tenant 1 if no other is named; answers with their ids. */
  enqueue(lanes: Priority[], more?: object, tenant?: number): Promise<string[]>;
  /** A tenant of that name and weight. */
  tenant(name: string, weight?: number): Promise<number>;
  /** The status of a notification, and its attempts' outcomes. */
  look(id: string): Promise<{ status: string; outcomes: string[]; attempts: number[] }>;
  /** How often the record says that it was postponed. */
  postponements(id: string): Promise<number>;
  clear(): Promise<void>;
  stop(): Promise<void>;
};

export const LEASE_MS = 30_000;
export const SENT = { to: "sent" } as const;

export const settled = (attempt: Attempt, settlement: Settlement, outcome = "accepted"): Ended => ({
  attempt,
  settlement,
  line: { outcome },
});

/** One engine for a whole suite, emptied before each test. It is there only once the tests run. */
export function useHarness(setUp: () => Promise<QueueHarness>) {
  let made: QueueHarness | undefined;
  before(async () => {
    made = await setUp();
  });
  beforeEach(() => made?.clear());
  after(() => made?.stop());
  const under = lazy<QueueHarness>(() => made as QueueHarness);
  const queue = lazy<Queue>(() => under.queue);
  return {
    under,
    queue,
    claimIds: async (count: number) => (await queue.claim(1, count, LEASE_MS)).map(({ id }) => id),
    /** But for the age, which the clock decides. */
    async depth(): Promise<Omit<Depth, "oldestAgeMs">> {
      const { oldestAgeMs: _, ...counts } = await queue.depth(under.db);
      return counts;
    },
  };
}

const lazy = <Thing extends object>(find: () => Thing): Thing =>
  new Proxy({} as Thing, { get: (_, name) => Reflect.get(find(), name) });
