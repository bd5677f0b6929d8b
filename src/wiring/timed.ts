// What the scheduler sees to when its time has come. A new one is one more entry here.

import type { Queue } from "#queue/queue.ts";
import { nextPlan } from "#record/plans.ts";
import type { Timed } from "#roles/timed.ts";
import { continueBroadcasts } from "#steps/planned/broadcast.ts";
import { carryOutPlans } from "#steps/planned/carry-out-plans.ts";
import { endPauses } from "#steps/planned/end-pauses.ts";
import type { Firing } from "#steps/planned/fire.ts";
import { fireReminders } from "#steps/planned/fire-reminders.ts";
import { fireSchedules } from "#steps/planned/fire-schedules.ts";
import { forgetUsers } from "#steps/planned/forget-users.ts";
import { replan } from "#steps/planned/replan.ts";
import { whenDue } from "#steps/planned/when-due.ts";
import { nextBroadcast } from "#store/broadcasts.ts";
import type { Queryable } from "#store/connection/database.ts";
import { nextDeletion } from "#store/deletions.ts";
import { nextPauseEnd } from "#store/pauses.ts";
import { nextReplan } from "#store/reminder-scopes.ts";
import { nextLine } from "#store/reminders.ts";
import { nextSchedule } from "#store/schedules.ts";

/** Of every tenant so many in one round. */
const OF_EACH = 100;
const REPLAN_BATCH = 500;

/**
 * `looks` has connections with pinned plans, as these tables too may fill faster than statistics follow; `wake` is called when
 * something may be claimed.
 */
export function timedOf(
  queue: Pick<Queue, "nextDue" | "bringBack" | "cancelAll" | "retry">,
  looks: Queryable,
  firing: Firing,
  wake: () => void,
): Timed[] {
  const planned = (name: string, next: typeof nextSchedule, fire: () => Promise<number>): Timed => ({
    name,
    fire: whenDue(() => next(looks), fire, wake),
  });
  return [
    { name: "queue", fire: () => wakeWhenDue(queue, wake) },
    planned("schedules", nextSchedule, () => fireSchedules(firing, OF_EACH)),
    planned("reminders", nextLine, () => fireReminders(firing, OF_EACH)),
    planned("broadcasts", nextBroadcast, () => continueBroadcasts(firing)),
    planned("pauses", nextPauseEnd, () => endPauses({ pool: firing.pool, queue })),
    planned("deletions", nextDeletion, () => forgetUsers(firing, queue)),
    planned("plans", nextPlan, () => carryOutPlans(firing, queue)),
    planned("re-plans", nextReplan, () => replan(firing, REPLAN_BATCH)),
  ];
}

/** What waits in the queue is claimed where it waits: it needs no more than a worker that looks, and nobody looks for it again. */
async function wakeWhenDue(queue: Pick<Queue, "nextDue">, wake: () => void) {
  const { hasDue, ...next } = await queue.nextDue();
  if (hasDue) wake();
  return next;
}
