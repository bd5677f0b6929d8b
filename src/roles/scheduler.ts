// The scheduler: a list of sources, each seen to when its time has come. What waits in the queue is claimed where it waits, so
// all that needs is a worker that looks; the others fire what they have.
//
// Only the database's clock decides what is due. When the clocks on the wall have jumped, or the machine was asleep, timers are
// not to be trusted, and everything is looked at.

import { startTimed, type Timed, type TimedOptions } from "./timed.ts";

export type SchedulerOptions = TimedOptions & {
  sources: readonly Timed[];
  /** The wall clock, watched only for jumps. */
  wallClock: () => number;
};

export type RunningScheduler = {
  /** Something is due at that instant of the database's clock; undefined: look. */
  hint(dueMs: number | undefined): void;
  stop(): Promise<void>;
};

const TICK_MS = 1_000;
/** A clock that moved this much more or less than time did has jumped, or the machine was asleep. */
const JUMP_MS = 500;

export function startScheduler({ sources, wallClock, ...options }: SchedulerOptions): RunningScheduler {
  const loops = sources.map((source) => startTimed(source, options));
  const hint = (dueMs: number | undefined) => {
    for (const loop of loops) loop.hint(dueMs);
  };
  let drift = wallClock() - options.monotonic();
  const watch = setInterval(() => {
    const now = wallClock() - options.monotonic();
    if (Math.abs(now - drift) > JUMP_MS) hint(undefined);
    drift = now;
  }, TICK_MS);

  return {
    hint,
    async stop() {
      clearInterval(watch);
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
