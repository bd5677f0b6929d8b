// One timed source: looked at when its next is due, and when a hint says that something earlier came.
//
// Each has a loop of its own, so that one that fails, or hangs, makes no other late. A hint names an instant but not a source:
// it costs no look until then, however many come; at that instant every source that had nothing earlier looks whether it was
// meant. Hints may be lost, timers may drift and laptops may sleep: it looks every few minutes anyway.

import type { Next } from "#store/due.ts";
import { createNap } from "#timing/nap.ts";

export type Timed = {
  name: string;
  /** Does some of what is due, and answers with when the next is; never early, and safe when several do it at once. */
  fire(): Promise<Next>;
};

export type TimedOptions = {
  /** The longest it sleeps without looking. */
  recheckMs: number;
  monotonic: () => number;
  onFailure: (source: string, error: unknown) => void;
};

export type RunningTimed = {
  /** Something is due at that instant of the database's clock; undefined: look now. */
  hint(dueMs: number | undefined): void;
  stop(): Promise<void>;
};

const RETRY_MS = 1_000;
/** After an outage nothing is late by more than this, also where nobody says that it is over. */
const MOST_RETRY_MS = 5_000;

export function startTimed(source: Timed, { recheckMs, monotonic, onFailure }: TimedOptions): RunningTimed {
  const nap = createNap();
  let isStopped = false;
  let failures = 0;
  // When it looks again, by itself and because of a hint, on the monotonic clock.
  let looksAt = Number.NEGATIVE_INFINITY;
  let hintedAt = Number.POSITIVE_INFINITY;
  /** By how much the database's clock is ahead of the monotonic one, rather more than less: a look may be early, never late. */
  let aheadMs = Number.POSITIVE_INFINITY;

  async function look(): Promise<void> {
    looksAt = Number.POSITIVE_INFINITY;
    hintedAt = Number.POSITIVE_INFINITY;
    const startedAt = monotonic();
    try {
      const { nowMs, inMs = recheckMs } = await source.fire();
      failures = 0;
      aheadMs = nowMs - startedAt;
      looksAt = monotonic() + Math.min(recheckMs, inMs);
    } catch (error) {
      onFailure(source.name, error);
      looksAt = monotonic() + Math.min(MOST_RETRY_MS, RETRY_MS * 2 ** failures);
      // Said during the look that failed: the next one may well succeed.
      if (hintedAt !== Number.NEGATIVE_INFINITY) hintedAt = Number.POSITIVE_INFINITY;
      failures += 1;
    }
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      const waitMs = Math.min(looksAt, hintedAt) - monotonic();
      if (waitMs > 0) {
        await nap.sleep(Math.ceil(waitMs));
        if (nap.wasWoken()) continue;
      }
      await look();
    }
  }

  const running = run();
  return {
    hint(dueMs) {
      // What fails is not hurried by every hint, only by one that says the connection is back.
      if (failures > 0 && dueMs !== undefined) return;
      const at = dueMs === undefined ? Number.NEGATIVE_INFINITY : dueMs - aheadMs;
      if (at >= Math.min(looksAt, hintedAt)) return;
      hintedAt = at;
      nap.wake();
    },
    stop() {
      isStopped = true;
      nap.wake();
      return running;
    },
  };
}
