// Settles attempts in shared commits: many at once under load, one at once when idle.
//
// A settlement that cannot be written is tried again for a while: it may be the only place that knows that a
// message was sent. If it stays unwritten, the lease runs out and the sweep finds the attempt.

import { createGroupCommit } from "../domain/group-commit.ts";
import type { Queue, Settled } from "../queue/queue.ts";
import { isOutage } from "../store/database.ts";

export type Settle = {
  settle(settled: Settled): Promise<boolean>;
  idle(): Promise<void>;
};

const RETRY_MS = 200;

export function createSettle(options: {
  queue: Queue;
  lanes: number;
  /** How long to try. */
  patienceMs: number;
  monotonic: () => number;
  sleep: (ms: number) => Promise<void>;
}): Settle {
  const { queue, lanes, patienceMs, monotonic, sleep } = options;

  async function commit(batch: Settled[]): Promise<boolean[]> {
    const deadline = monotonic() + patienceMs;
    for (;;) {
      try {
        return await queue.settle(batch);
      } catch (error) {
        if (!isOutage(error) || monotonic() >= deadline) throw error;
        // A commit whose answer was lost has happened or not: settling again tells, by what is still held.
        await sleep(RETRY_MS);
      }
    }
  }

  const commits = createGroupCommit<Settled, boolean>({
    lanes,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    commit,
  });
  return {
    settle(settled) {
      // The worker bounds what is under way, so nothing is ever refused here.
      return commits.submitOne(settled, 0) ?? Promise.reject(new Error("a settlement was refused"));
    },
    idle: commits.idle,
  };
}
