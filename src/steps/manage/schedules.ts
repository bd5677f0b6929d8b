// Recurring schedules: kept, paused, resumed and ended by somebody. planned/fire-schedules.ts fires them.
//
// The database's clock decides, read once the row is ours.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { digestOf } from "#domain/audit.ts";
import { invalid, type Problem } from "#domain/problems.ts";
import { faultsOfSchedule, nextTick, type ScheduleRequest } from "#domain/schedule.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, readClock } from "#store/connection/database.ts";
import { deleteSchedule, lockSchedule, putSchedule, type StoredSchedule, setPaused } from "#store/schedules.ts";
import type { NoticeTexts } from "#templates/inline.ts";

export type ScheduleWorld = {
  pool: pg.Pool;
  noticeTexts: Pick<NoticeTexts, "faultsOf">;
  /** The database's clock, to judge by. What is kept goes by its own, read once the row is ours. */
  now: () => Date;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export async function keepSchedule(
  { pool, noticeTexts, now, plan }: ScheduleWorld,
  actor: KeyActor,
  key: string,
  given: ScheduleRequest,
): Promise<StoredSchedule | Problem> {
  const { tenant } = actor;
  const unfilled = await noticeTexts.faultsOf(tenant, given.notice, "/notification");
  const faults = [...faultsOfSchedule(given, now()), ...unfilled];
  if (faults.length > 0) return invalid(faults);
  const kept = await inTransaction(pool, async (tx) => {
    const known = await lockSchedule(tx, tenant, key);
    const now = await readClock(tx);
    // Saying the same again must not move the ticks of `every`.
    const from = given.from ?? known?.from ?? now;
    const schedule = { ...given, from };
    const nextAt = nextTick(schedule, now) ?? null;
    const kept = await putSchedule(tx, { tenant, key, ...schedule, nextAt });
    const before = known && { before: shown(known) };
    await writeAudit(tx, actor, { action: "schedule.keep", object: objectOf(key), ...before, after: shown(kept) });
    return kept;
  });
  planNext(kept, plan);
  return kept;
}

/** Undefined when there is none of that name. Ticks that pass while it is paused are not made up for. */
export async function pauseSchedule(
  { pool, plan }: Pick<ScheduleWorld, "pool" | "plan">,
  actor: KeyActor,
  key: string,
  isPaused: boolean,
): Promise<StoredSchedule | undefined> {
  const { tenant } = actor;
  const kept = await inTransaction(pool, async (tx) => {
    const known = await lockSchedule(tx, tenant, key);
    if (!known) return undefined;
    if ((known.pausedAt !== null) === isPaused) return known;
    const nextAt = isPaused ? undefined : nextTick(known, await readClock(tx));
    await setPaused(tx, tenant, key, isPaused, nextAt ?? null);
    await writeAudit(tx, actor, { action: isPaused ? "schedule.pause" : "schedule.resume", object: objectOf(key) });
    return lockSchedule(tx, tenant, key);
  });
  if (kept) planNext(kept, plan);
  return kept;
}

/** False when there is none of that name. What it sent stays in the record. */
export const endSchedule = (pool: pg.Pool, actor: KeyActor, key: string): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    const known = await lockSchedule(tx, actor.tenant, key);
    if (!known) return false;
    await writeAudit(tx, actor, { action: "schedule.delete", object: objectOf(key), before: shown(known) });
    return deleteSchedule(tx, actor.tenant, key);
  });

const objectOf = (key: string) => ({ kind: "schedule", name: key });

/** A notice names people: the log says no more than whether it is another. */
const shown = ({ cron, every, timezone, from, until, catchUp, notice }: StoredSchedule) => ({
  ...{ cron, every, timezone, from, until, catchUp },
  notice: digestOf(notice),
});

function planNext({ nextAt }: StoredSchedule, plan: ScheduleWorld["plan"]): void {
  if (nextAt) plan(nextAt.getTime());
}
