// The caller: makes callbacks of what happened, round after round, and gives way to those who send.
//
// While notifications wait to be sent it works a small part of the time, and more as it falls behind: all of it when it is a minute
// behind, so that its lag is bounded. While nobody waits it works half of the time.

import type { Round } from "#steps/calls/make-callbacks.ts";
import { createNap } from "#timing/nap.ts";

export type CallerOptions = {
  /** One round; undefined while another process is at it. */
  round: () => Promise<Round | undefined>;
  /** Whether notifications wait to be sent. */
  hasBacklog: () => Promise<boolean>;
  onMade: (count: number) => void;
  onFailure: (error: unknown) => void;
  monotonic: () => number;
};

export type RunningCaller = { stop(): Promise<void> };

const POLL_MS = 200;
/** Another process is at it, and would be missed after this long. */
const TAKEN_MS = 2_000;
const FAILED_MS = 1_000;
const MOST_MS = 5_000;
const IDLE_SHARE = 1 / 2;
const LEAST_SHARE = 1 / 50;
const FULL_LAG_MS = 60_000;

export function startCaller({ round, hasBacklog, onMade, onFailure, monotonic }: CallerOptions): RunningCaller {
  const nap = createNap();
  let isStopping = false;

  /** Answers with how long to rest. */
  async function work(): Promise<number> {
    const startedAt = monotonic();
    try {
      const done = await round();
      if (!done) return TAKEN_MS;
      if (done.made > 0) onMade(done.made);
      if (done.isAtEnd) return POLL_MS;
      const share = (await hasBacklog()) ? shareAt(done.lagMs) : IDLE_SHARE;
      return restMs(monotonic() - startedAt, share);
    } catch (error) {
      onFailure(error);
      return FAILED_MS;
    }
  }

  const loop = (async () => {
    while (!isStopping) await nap.sleep(Math.max(1, await work()));
  })();
  return {
    async stop() {
      isStopping = true;
      nap.wake();
      await loop;
    },
  };
}

/** The part of the time that it works, by how far it is behind. */
export const shareAt = (lagMs: number): number => Math.min(1, Math.max(LEAST_SHARE, (lagMs / FULL_LAG_MS) ** 2));

export const restMs = (workMs: number, share: number): number => Math.min(MOST_MS, workMs * (1 / share - 1));
