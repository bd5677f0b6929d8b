// The scheduler, wired. What it finds due, or fires, wakes the worker.

import { createIds } from "#domain/ids.ts";
import { type RunningScheduler, startScheduler } from "#roles/scheduler.ts";
import { continueBroadcasts } from "#steps/planned/broadcast.ts";
import type { Firing } from "#steps/planned/fire.ts";
import { fireReminders } from "#steps/planned/fire-reminders.ts";
import { replan } from "#steps/planned/remind.ts";
import { fireSchedules } from "#steps/planned/schedule.ts";
import { createAcceptWithin } from "#steps/walk/accept.ts";
import type { Base } from "./base.ts";
import type { Channels } from "./channels.ts";

/** Nothing is missed for longer than this, whatever became of the hints. */
const RECHECK_MS = 300_000;
/** What one transaction of a firing takes: about five times as much memory, and a fraction of a second. */
const CHUNK_BYTES = 2 * 1024 * 1024;

export function openScheduler(
  { database, clock, monotonic, facts, log }: Base,
  { noticeTexts }: Channels,
  wake: () => void,
): RunningScheduler {
  let isStopping = false;
  const firing: Firing = {
    pool: database.own,
    acceptWithin: createAcceptWithin({ newId: createIds(clock.nowMs), now: clock.now }),
    fill: noticeTexts.fill,
    monotonic,
    chunkBytes: CHUNK_BYTES,
    onFailure: (what, error) => facts.unfired(what, error),
    isStopping: () => isStopping,
  };
  const scheduler = startScheduler({
    db: database.work,
    fireSchedules: (ofEach) => fireSchedules(firing, ofEach),
    fireReminders: (ofEach) => fireReminders(firing, ofEach),
    continueBroadcasts: () => continueBroadcasts(firing),
    replan: (batch) => replan(firing, batch),
    recheckMs: RECHECK_MS,
    onDue: wake,
    wallClock: Date.now,
    monotonic,
    log,
  });
  return {
    ...scheduler,
    stop() {
      isStopping = true;
      return scheduler.stop();
    },
  };
}
