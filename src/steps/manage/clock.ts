// Time travel, in development: the clock of everybody here is moved on, or set back to the true time.
//
// Moving on is what time does by itself. Setting back is not: what was made meanwhile keeps its times and comes first in lists, what was fired is not
// fired again, and what was planned waits for its time.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { type Duration, shift } from "#domain/duration.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { type Clocks, lockClock, makeWeeksAround, readClocks, setClock } from "#store/moved-clock.ts";
import { mustOperate } from "./keys.ts";

export type ClockWorld = {
  pool: pg.Pool;
  clock: { look(): Promise<void> };
  /** Tells all processes. */
  tell: () => Promise<void>;
  /** Something may be due. */
  plan: (dueMs: number) => void;
};

export type Move = { by: Duration } | { to: Date };

/** Ten years: calendars, time zones and partitions beyond are nobody's to try. */
const MOST_MS = 3_653 * 86_400_000;
/** Earlier than anything: whoever sleeps until an instant looks. */
const NOW = 0;

export async function moveClock(world: ClockWorld, actor: KeyActor, move: Move): Promise<Clocks | Problem> {
  const allowed = mustOperate(actor);
  if (allowed instanceof Problem) return allowed;
  return changing(world, actor, "clock.move", ({ now }) => ("by" in move ? shift(now, move.by, 1, "UTC") : move.to));
}

export async function resetClock(world: ClockWorld, actor: KeyActor): Promise<Clocks | Problem> {
  const allowed = mustOperate(actor);
  if (allowed instanceof Problem) return allowed;
  return changing(world, actor, "clock.reset", () => undefined);
}

/** `targetOf`: where it is to stand; undefined for the true time. */
async function changing(
  { pool, clock, tell, plan }: ClockWorld,
  actor: KeyActor,
  action: "clock.move" | "clock.reset",
  targetOf: (clocks: Clocks) => Date | undefined,
): Promise<Clocks | Problem> {
  const changed = await inTransaction(pool, async (tx) => {
    await lockClock(tx);
    const clocks = await readClocks(tx);
    const { now, trueNow } = clocks;
    const target = targetOf(clocks);
    if (target && target < now) return invalid([{ path: "/to", message: "must not be earlier than the clock shows" }]);
    const aheadMs = target ? target.getTime() - trueNow.getTime() : 0;
    if (aheadMs > MOST_MS) return invalid([{ path: "", message: "must not lead further than ten years" }]);
    if (target) await makeWeeksAround(tx, target);
    await setClock(tx, aheadMs);
    const movedMs = now.getTime() - trueNow.getTime();
    const object = { kind: "clock" };
    await writeAudit(tx, actor, { action, object, before: { movedMs }, after: { movedMs: aheadMs } });
    return undefined;
  });
  if (changed) return changed;
  await clock.look();
  await tell();
  plan(NOW);
  return readClocks(pool);
}
