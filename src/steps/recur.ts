// Recurring schedules: kept, paused, resumed, and fired tick by tick.
//
// A firing is one transaction: the row is locked, its notifications are accepted, its run is written and its next tick is
// set. Whatever fails or crashes before the commit, the tick is still due; after it, the tick is gone.

import type pg from "pg";
import type { Notice } from "../domain/notice.ts";
import { requestsOf } from "../domain/notice.ts";
import { type CatchUp, judgeTick, nextTick, type Recurrence } from "../domain/recurrence.ts";
import { inTransaction, type Queryable, trying } from "../store/database.ts";
import {
  insertRun,
  lockRecurrence,
  putRecurrence,
  type StoredRecurrence,
  setNext,
  takeDueRecurrences,
} from "../store/recurrences.ts";
import { type AcceptWithin, summaryOf } from "./accept.ts";

export type RecurrenceRequest = Omit<Recurrence, "from"> & { from: Date | undefined; catchUp: CatchUp; notice: Notice };

export function keepRecurrence(
  pool: pg.Pool,
  tenant: number,
  key: string,
  given: RecurrenceRequest,
  now: Date,
): Promise<StoredRecurrence> {
  return inTransaction(pool, async (tx) => {
    const known = await lockRecurrence(tx, tenant, key);
    // Saying the same again must not move the ticks of `every`.
    const from = given.from ?? known?.from ?? now;
    const recurrence = { ...given, from };
    const nextAt = nextTick(recurrence, now) ?? null;
    return putRecurrence(tx, { tenant, key, ...recurrence, nextAt });
  });
}

/** Undefined when there is none of that name. Ticks that pass while it is paused are not made up for. */
export function pauseRecurrence(
  pool: pg.Pool,
  tenant: number,
  key: string,
  isPaused: boolean,
  now: Date,
): Promise<StoredRecurrence | undefined> {
  return inTransaction(pool, async (tx) => {
    const known = await lockRecurrence(tx, tenant, key);
    if (!known) return undefined;
    if ((known.pausedAt !== null) === isPaused) return known;
    await setNext(tx, tenant, key, isPaused ? null : (nextTick(known, now) ?? null), isPaused);
    return lockRecurrence(tx, tenant, key);
  });
}

/** Fires what is due, up to `limit` schedules; returns how many it looked at. */
export function fireRecurrences(pool: pg.Pool, acceptWithin: AcceptWithin, limit: number): Promise<number> {
  return inTransaction(pool, async (tx) => {
    const due = await takeDueRecurrences(tx, limit);
    for (const recurrence of due) await fire(tx, acceptWithin, recurrence);
    return due.length;
  });
}

async function fire(
  tx: Queryable,
  acceptWithin: AcceptWithin,
  recurrence: StoredRecurrence & { now: Date },
): Promise<void> {
  const { tenant, key, catchUp, notice, nextAt, now } = recurrence;
  if (!nextAt) return;
  const { fires, skipped, next } = judgeTick(recurrence, catchUp, nextAt, now);
  const tick = fires ?? nextAt;
  const run = { tick, skipped, notifications: [] as string[], error: null as string | null };
  if (fires) {
    const outcomes = await trying(tx, () => acceptWithin(tx, tenant, requestsOf(notice)));
    Object.assign(run, summaryOf(outcomes));
  }
  const outcome = !fires ? "skipped" : run.notifications.length > 0 ? "sent" : "failed";
  const isFirst = await insertRun(tx, tenant, key, { ...run, outcome });
  // Cannot be while next_at moves with the run; if a person turned it back by hand, nothing is sent twice.
  if (!isFirst && run.notifications.length > 0)
    throw new Error(`the tick ${tick.toISOString()} of ${key} was run before`);
  await setNext(tx, tenant, key, next ?? null, false);
}
