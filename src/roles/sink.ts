// A sink's loop: page after page while there is something to tell, then a short rest. Where the other side is away it waits longer and longer, and
// goes on from where it was.

import type { Refused } from "#sinks/sink.ts";
import type { SinkFeeder } from "#steps/brokers/feed-sink.ts";
import { createNap } from "#timing/nap.ts";

export type SinkOptions = {
  feeder: Pick<SinkFeeder, "round" | "resign">;
  onCarried: (round: { carried: number; refused: readonly Refused[] }) => void;
  /** Waited for, so that nobody hears that it goes on before that it does not. */
  onFailure: (error: unknown) => Promise<void>;
  /** The first round that succeeds: here, or after one that failed. */
  onGoing: () => Promise<void>;
  random: () => number;
};

export type RunningSink = { stop(): Promise<void> };

const POLL_MS = 200;
/** Another process has it, and would be missed after this long. */
const TAKEN_MS = 2_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

export function startSink({ feeder, onCarried, onFailure, onGoing, random }: SinkOptions): RunningSink {
  const nap = createNap();
  const stopping = new AbortController();
  let failures = 0;
  let isGoing = false;

  /** Answers with how long to rest. */
  async function work(): Promise<number> {
    try {
      const round = await feeder.round(stopping.signal);
      failures = 0;
      if (round.kind === "taken" || round.kind === "paused") {
        isGoing = false;
        return round.kind === "taken" ? TAKEN_MS : POLL_MS;
      }
      onCarried(round);
      if (!isGoing) await onGoing();
      isGoing = true;
      return round.kind === "idle" ? POLL_MS : 0;
    } catch (error) {
      if (stopping.signal.aborted) return 0;
      isGoing = false;
      await onFailure(error);
      const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++);
      return waitMs * (0.5 + random() / 2);
    }
  }

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const restMs = await work();
      if (restMs > 0) await nap.sleep(restMs);
    }
    // Whoever is next waits for the lease otherwise.
    await feeder.resign().catch(() => undefined);
  })();
  return {
    async stop() {
      stopping.abort(new Error("stopping"));
      nap.wake();
      await loop;
    },
  };
}
