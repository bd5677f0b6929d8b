// Plans reminders again, batch by batch, when what they inherit has changed. fire-reminders.ts sends what is due.
//
// Planning and sending meet at the row of the plan: whoever locks it first decides, and the other sees what was done.

import { planOf, resolveOffsets, TENANT_SCOPE } from "#domain/reminder.ts";
import { inTransaction, type Queryable, readClock } from "#store/connection/database.ts";
import {
  nextMembers,
  peekReplan,
  putOffReplans,
  recordReplan,
  setOffsets,
  takeReplan,
} from "#store/reminder-scopes.ts";
import { findDefaults, lockDefaults, replacePlans, type StoredReminder } from "#store/reminders.ts";
import { type Firing, fireAlone } from "./fire.ts";

/** One batch of one re-plan, and a note of how far it came, in one commit. Returns how many it did or put off. */
export async function replan(
  firing: Pick<Firing, "pool" | "onFailure" | "isStopping">,
  limit: number,
): Promise<number> {
  const { pool } = firing;
  if (firing.isStopping()) return 0;
  const tenant = await peekReplan(pool);
  if (tenant === undefined) return 0;
  const wasOurs = await fireAlone(
    firing,
    { tenant, name: "re-plan" },
    () => inTransaction(pool, (tx) => replanBatch(tx, tenant, limit)),
    () => putOffReplans(pool, tenant),
  );
  return wasOurs === false ? 0 : 1;
}

async function replanBatch(tx: Queryable, tenant: number, limit: number): Promise<boolean> {
  // The same order as a change of a scope, so that neither waits for the other for ever.
  await lockDefaults(tx, tenant, "read");
  const step = await takeReplan(tx, tenant);
  if (!step) return false;
  const members = await nextMembers(tx, step, limit);
  await replanMembers(tx, tenant, members, await readClock(tx));
  const isOver = members.length < limit;
  await recordReplan(tx, step, { reached: members.at(-1)?.key ?? step.reached, done: members.length, isOver });
  return true;
}

async function replanMembers(tx: Queryable, tenant: number, members: StoredReminder[], now: Date): Promise<void> {
  const inheriting = members.filter(({ before }) => before === null);
  const scopes = [...new Set(inheriting.flatMap((reminder) => reminder.scopes)), TENANT_SCOPE];
  const defaults = await findDefaults(tx, tenant, scopes);
  const changed = inheriting
    .map((reminder) => ({ reminder, ...resolveOffsets(null, reminder.scopes, defaults) }))
    .filter(({ reminder, before, from }) => from !== reminder.offsetsFrom || !isSame(before, reminder.offsets));
  if (changed.length === 0) return;
  await setOffsets(
    tx,
    tenant,
    changed.map(({ reminder: { key }, before, from }) => ({ key, before, from })),
  );
  await replacePlans(
    tx,
    tenant,
    changed.map(({ reminder: { key, at, timezone }, before }) => ({
      key,
      at,
      lines: planOf(at, before, timezone, now),
    })),
  );
}

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, n) => item === b[n]);
