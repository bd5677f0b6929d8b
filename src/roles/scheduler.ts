// The scheduler: sleeps until something is due, and sees to it then. What waits for its time is claimed where it waits, so all
// it needs is a worker that looks; schedules and reminders are fired here.
//
// One look tells when the next of everything will be; it costs a few probes of indexes, however much waits. Then it sleeps
// exactly until then, unless a hint says that something earlier came. Hints may be lost, timers may drift and laptops
// may sleep: it looks again every few minutes anyway, and when the clocks on the wall have jumped.
// Only the database's clock decides what is due.

import type { Queryable } from "#store/connection/database.ts";
import { outlook } from "#store/due.ts";
import type { Logger } from "#telemetry/log.ts";
import { createNap } from "#timing/nap.ts";

export type SchedulerOptions = {
  /** The queue's own connections: its plans are pinned. */
  db: Queryable;
  /** Each does some of what is due, of every tenant so many, and answers with how much it did. */
  fireSchedules: (ofEach: number) => Promise<number>;
  fireReminders: (ofEach: number) => Promise<number>;
  continueBroadcasts: () => Promise<number>;
  replan: (batch: number) => Promise<boolean>;
  /** The longest it sleeps without looking. */
  recheckMs: number;
  /** Something may be claimed now. */
  onDue: () => void;
  /** The wall clock, watched only for jumps. */
  wallClock: () => number;
  monotonic: () => number;
  log: Logger;
};

export type RunningScheduler = {
  /** Something is due at that instant of the database's clock; undefined: look. */
  hint(dueMs: number | undefined): void;
  stop(): Promise<void>;
};

const FIRE_OF_EACH = 100;
const REPLAN_BATCH = 500;
const RETRY_MS = 1_000;
const HELD_MS = 5;
const TICK_MS = 1_000;
/** A clock that moved this much more or less than time did has jumped, or the machine was asleep. */
const JUMP_MS = 500;

export function startScheduler(options: SchedulerOptions): RunningScheduler {
  const { db, recheckMs, onDue, wallClock, monotonic, log } = options;
  const nap = createNap();
  let isStopped = false;
  /** When it will look next, on the database's clock; while it is looking, never. */
  let wakesAtMs = Number.NEGATIVE_INFINITY;

  const isOurs = (ms: number | undefined): boolean => isDue(ms) && !isStopped;

  /** Does some of what is due, a little of each kind; answers with how long to sleep. */
  async function round(): Promise<number> {
    const seen = await outlook(db);
    const { schedule, schedules, reminders, broadcasts } = seen;
    let done = 0;
    const note = (more: number) => {
      done += more;
      if (more > 0) onDue();
    };
    if (seen.hasDue) onDue();
    if (isOurs(schedules)) note(await options.fireSchedules(FIRE_OF_EACH));
    if (isOurs(reminders)) note(await options.fireReminders(FIRE_OF_EACH));
    if (isOurs(broadcasts)) note(await options.continueBroadcasts());
    if (seen.hasReplans && !isStopped && (await options.replan(REPLAN_BATCH))) return 0;
    const next = Math.min(...[schedule, schedules, reminders, broadcasts].map((ms) => ms ?? recheckMs));
    // Look for what comes after it; if it was not ours to do, another scheduler has it in hand.
    if (next <= 0) return done > 0 ? 0 : HELD_MS;
    const waitMs = Math.min(recheckMs, next);
    wakesAtMs = seen.nowMs + waitMs;
    return waitMs;
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      nap.wasWoken();
      wakesAtMs = Number.NEGATIVE_INFINITY;
      const waitMs = await round().catch((error: unknown) => {
        log.warn({ err: error }, "could not do what is due");
        return RETRY_MS;
      });
      if (waitMs > 0) await nap.sleep(Math.ceil(waitMs));
    }
  }

  const running = run();
  let drift = wallClock() - monotonic();
  const watch = setInterval(() => {
    const now = wallClock() - monotonic();
    if (Math.abs(now - drift) > JUMP_MS) nap.wake();
    drift = now;
  }, TICK_MS);

  return {
    hint(dueMs) {
      // While it looks, what came may be too late for that look: then it looks once more.
      if (dueMs === undefined || dueMs < wakesAtMs || wakesAtMs === Number.NEGATIVE_INFINITY) nap.wake();
    },
    stop() {
      isStopped = true;
      clearInterval(watch);
      nap.wake();
      return running;
    },
  };
}

const isDue = (ms: number | undefined): boolean => ms !== undefined && ms <= 0;
