// A source runs unless it is paused: that is looked at again and again, and a paused one reads nothing and keeps its place.

import type { RunningSource } from "#sources/source.ts";
import { createNap } from "#timing/nap.ts";

export type SourceOptions = {
  open: () => Promise<RunningSource>;
  isPaused: () => Promise<boolean>;
  /** It could not be found out whether it is paused, or it could not be opened. It goes on as it was. */
  onFailure: (error: unknown) => void;
};

export type SupervisedSource = RunningSource;

const LOOK_MS = 1_000;

export function startSource({ open, isPaused, onFailure }: SourceOptions): SupervisedSource {
  const nap = createNap();
  let isStopped = false;
  let running: RunningSource | undefined;

  async function look(): Promise<void> {
    const isToRun = !(await isPaused());
    if (isToRun && !running) running = await open();
    if (isToRun || !running) return;
    const paused = running;
    running = undefined;
    await paused.stop();
  }

  const loop = (async () => {
    while (!isStopped) {
      await look().catch(onFailure);
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
