// The scheduler, wired. What it finds due, or fires, wakes the worker.

import { createIds } from "#domain/ids.ts";
import { type RunningScheduler, startScheduler } from "#roles/scheduler.ts";
import type { Firing } from "#steps/planned/fire.ts";
import { createAcceptWithin } from "#steps/walk/accept.ts";
import type { Base } from "./base.ts";
import type { Channels } from "./channels.ts";
import { timedOf } from "./timed.ts";

/** Nothing is missed for longer than this, whatever became of the hints. */
const RECHECK_MS = 300_000;
/** What one transaction of a firing takes: about five times as much memory, and a fraction of a second. */
const CHUNK_BYTES = 2 * 1024 * 1024;

export function openScheduler(
  { database, queue, clock, monotonic, facts, traces }: Base,
  { noticeTexts }: Channels,
  wake: () => void,
): RunningScheduler {
  let isStopping = false;
  const firing: Firing = {
    pool: database.own,
    acceptWithin: createAcceptWithin({ newId: createIds(clock.nowMs), now: clock.now, traces }),
    fill: noticeTexts.fill,
    monotonic,
    chunkBytes: CHUNK_BYTES,
    onFailure: (what, error) => facts.unfired(what, error),
    isStopping: () => isStopping,
  };
  const scheduler = startScheduler({
    sources: timedOf(queue, database.work, firing, wake),
    recheckMs: RECHECK_MS,
    wallClock: Date.now,
    monotonic,
    onFailure: (source, error) => facts.timedFailed(source, error),
  });
  return {
    ...scheduler,
    stop() {
      isStopping = true;
      return scheduler.stop();
    },
  };
}
