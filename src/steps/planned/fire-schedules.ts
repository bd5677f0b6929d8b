// Fires recurring schedules, tick by tick.
//
// A firing is one transaction: the row is locked, the run of its tick begins, its notifications are accepted, its run ends
// and its next tick is set. Whatever fails or crashes before the commit, the tick is still due; after it, the tick is gone.
// Its texts are filled before, so that the transaction is short whatever a tenant wrote; if the schedule was changed meanwhile,
// nothing is sent, and what it says now is seen to next.
// The database's clock decides, read once the row is ours: a replica's own may lag, and would bring a tick back that has run.

import { requestsOf } from "#domain/notice.ts";
import { judgeTick } from "#domain/schedule.ts";
import { acceptEach, summaryOf } from "#steps/walk/accept.ts";
import { insertBroadcast } from "#store/broadcasts.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import {
  beginRun,
  type DueSchedule,
  dueSchedules,
  endRun,
  putOffSchedule,
  type Run,
  readDueSchedule,
  takeDueSchedule,
} from "#store/schedules.ts";
import { createTurn, type FilledNotice, type Firing, filled, fireAlone } from "./fire.ts";

/** Fires what is due, up to `ofEach` schedules of every tenant; returns how many it fired or put off. */
export async function fireSchedules(firing: Firing, ofEach: number): Promise<number> {
  const { pool } = firing;
  const isOver = createTurn(firing);
  let done = 0;
  for (const { tenant, key } of await dueSchedules(pool, ofEach)) {
    if (isOver(tenant)) continue;
    const wasOurs = await fireAlone(
      firing,
      { tenant, name: `schedule ${key}` },
      () => fire(firing, tenant, key),
      (reason) => putOffSchedule(pool, tenant, key, reason),
    );
    if (wasOurs !== false) done += 1;
  }
  return done;
}

/** False when it is not due any more, was changed, or is in another scheduler's hand. */
async function fire(firing: Firing, tenant: number, key: string): Promise<boolean> {
  const seen = await readDueSchedule(firing.pool, tenant, key);
  if (!seen) return false;
  const judged = judgeTick(seen, seen.catchUp, seen.nextAt, seen.now);
  const { fires } = judged;
  const notice = fires && (await filled(firing, tenant, seen.notice, { at: fires.toISOString(), key }));
  return inTransaction(firing.pool, async (tx) => {
    const held = await takeDueSchedule(tx, tenant, key);
    if (!held || !isSame(held, seen)) return false;
    const { skipped, next } = judged;
    const tick = fires ?? held.nextAt;
    // Run before: a person, or a clock, was turned back. Nothing is sent twice, and the next tick is looked for.
    const isFirst = await beginRun(tx, tenant, key, tick);
    const sent = isFirst && notice ? await send(tx, firing, { tenant, key, tick, notice }) : NOTHING_SENT;
    await endRun(tx, tenant, key, isFirst ? { tick, skipped, ...sent } : undefined, next ?? null);
    return true;
  });
}

const isSame = (one: DueSchedule, other: DueSchedule): boolean =>
  one.updatedAt.getTime() === other.updatedAt.getTime() && one.nextAt.getTime() === other.nextAt.getTime();

type Sent = Pick<Run, "outcome" | "notifications" | "error">;
const NOTHING_SENT: Sent = { outcome: "skipped", notifications: [], error: null };

async function send(
  tx: Queryable,
  { acceptWithin, chunkBytes }: Firing,
  { tenant, key, tick, notice: filled }: { tenant: number; key: string; tick: Date; notice: FilledNotice },
): Promise<Sent> {
  if ("error" in filled) return { outcome: "failed", notifications: [], error: filled.error };
  const { notice, bytes } = filled;
  if (bytes > chunkBytes) {
    await insertBroadcast(tx, { runKey: key, runTick: tick }, { tenant, notice, expiresAt: null });
    return { outcome: "sending", notifications: [], error: null };
  }
  const summary = summaryOf(await acceptEach(tx, acceptWithin, tenant, requestsOf(notice)));
  return { outcome: summary.notifications.length > 0 ? "sent" : "failed", ...summary };
}
