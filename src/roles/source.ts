// A source runs unless it is paused: that is looked at again and again, and a paused one reads nothing and keeps its place.

import type { RunningSource } from "#sources/source.ts";
import { createNap } from "#timing/nap.ts";

export type SourceOptions = {
  open: () => Promise<RunningSource>;
  isPaused: () => Promise<boolean>;
  /** It is run here, also while it is paused; said every few seconds. */
  touch: () => Promise<void>;
  /** It could not be found out whether it is paused, or it could not be opened. It goes on as it was. */
  onFailure: (error: unknown) => void;
};

export type SupervisedSource = RunningSource;

const LOOK_MS = 1_000;
/** Of looks. */
const TOUCH_EVERY = 5;

export function startSource({ open, isPaused, touch, onFailure }: SourceOptions): SupervisedSource {
  const nap = createNap();
  let isStopped = false;
  let running: RunningSource | undefined;

  async function look(n: number): Promise<void> {
    if (n % TOUCH_EVERY === 0) await touch();
    const isToRun = !(await isPaused());
    if (isToRun && !running) running = await open();
    if (isToRun || !running) return;
    const paused = running;
    running = undefined;
    await paused.stop();
  }

  const loop = (async () => {
    for (let looks = 0; !isStopped; looks++) {
      await look(looks).catch(onFailure);
      await nap.sleep(LOOK_MS);
    }
    await running?.stop();
  })();
  return {
    lag: () => running?.lag(),
    async stop() {
      isStopped = true;
      nap.wake();
      await loop;
    },
  };
}
