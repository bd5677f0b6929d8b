// The scheduler: moves what has become due into its lane, and sleeps until the next.

import type { Queryable } from "../store/database.ts";
import { moveDue, nextDueMs } from "../store/due.ts";
import type { Logger } from "../telemetry/log.ts";
import { createNap } from "./nap.ts";

export type RunningScheduler = { wake(): void; stop(): Promise<void> };

const BATCH = 1_000;
const RETRY_MS = 1_000;

export function startScheduler(options: {
  db: Queryable;
  /** The longest it sleeps without looking. */
  recheckMs: number;
  onMoved: () => void;
  log: Logger;
}): RunningScheduler {
  const { db, recheckMs, onMoved, log } = options;
  const nap = createNap();
  let isStopped = false;

  async function round(): Promise<number> {
    for (let moved = BATCH; moved === BATCH && !isStopped; ) {
      moved = await moveDue(db, BATCH);
      if (moved > 0) onMoved();
    }
    return Math.max(0, Math.min(recheckMs, (await nextDueMs(db)) ?? recheckMs));
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      nap.wasWoken();
      const waitMs = await round().catch((error: unknown) => {
        log.warn({ err: error }, "could not move what is due");
        return RETRY_MS;
      });
      await nap.sleep(Math.ceil(waitMs));
    }
  }

  const running = run();
  return {
    wake: nap.wake,
    stop() {
      isStopped = true;
      nap.wake();
      return running;
    },
  };
}
