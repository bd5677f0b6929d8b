// Reminders and the offsets they inherit, as somebody changes them. What is planned of them is sent by planned/fire-reminders.ts.
//
// Planning and sending meet at the row of the plan: whoever locks it first decides, and the other sees what was done.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { digestOf } from "#domain/audit.ts";
import { invalid, type Problem } from "#domain/problems.ts";
import { faultsOfReminder, planOf, type ReminderRequest, resolveOffsets, TENANT_SCOPE } from "#domain/reminder.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, readClock } from "#store/connection/database.ts";
import { deleteScope, putScope, startReplan } from "#store/reminder-scopes.ts";
import {
  deleteReminder,
  findDefaults,
  findPlan,
  lockDefaults,
  lockReminder,
  type PlanLine,
  putReminder,
  replacePlans,
  type StoredReminder,
} from "#store/reminders.ts";
import type { NoticeTexts } from "#templates/inline.ts";

export type ReminderWorld = {
  pool: pg.Pool;
  noticeTexts: Pick<NoticeTexts, "faultsOf">;
  /** The database's clock, to judge by. */
  now: () => Date;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export type KeptReminder = { reminder: StoredReminder; lines: PlanLine[]; isNew: boolean };

/** Stores it and puts its new plan in the place of the old one. */
export async function keepReminder(
  { pool, noticeTexts, now, plan }: ReminderWorld,
  actor: KeyActor,
  key: string,
  given: ReminderRequest,
): Promise<KeptReminder | Problem> {
  const { tenant } = actor;
  const unfilled = await noticeTexts.faultsOf(tenant, given.notice, "/notification");
  const faults = [...faultsOfReminder(given, now()), ...unfilled];
  if (faults.length > 0) return invalid(faults);
  const { isNew, ...reminder } = await inTransaction(pool, async (tx) => {
    await lockDefaults(tx, tenant, "read");
    const defaults = await findDefaults(tx, tenant, [...given.scopes, TENANT_SCOPE]);
    const { before: offsets, from: offsetsFrom } = resolveOffsets(given.before, given.scopes, defaults);
    const known = await lockReminder(tx, tenant, key);
    const stored = await putReminder(tx, { tenant, key, ...given, offsets, offsetsFrom });
    const before = known && { before: shown(known) };
    await writeAudit(tx, actor, { action: "reminder.keep", object: objectOf(key), ...before, after: shown(stored) });
    // Read once the row is ours: what became due while it was waited for is past.
    const lines = planOf(given.at, offsets, given.timezone, await readClock(tx));
    await replacePlans(tx, tenant, [{ key, at: given.at, lines }]);
    return stored;
  });
  const lines = await findPlan(pool, tenant, key);
  const next = lines.find(({ outcome }) => outcome === null);
  if (next) plan(next.dueAt.getTime());
  return { reminder, lines, isNew };
}

/** With what is planned of it. False when there is none of that name. */
export const forgetReminder = (pool: pg.Pool, actor: KeyActor, key: string): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    const known = await lockReminder(tx, actor.tenant, key);
    if (!known) return false;
    await writeAudit(tx, actor, { action: "reminder.delete", object: objectOf(key), before: shown(known) });
    return deleteReminder(tx, actor.tenant, key);
  });

const objectOf = (key: string) => ({ kind: "reminder", name: key });

/** A notice names people: the log says no more than whether it is another. */
const shown = ({ at, timezone, before, scopes, notice }: StoredReminder) => ({
  ...{ at, timezone, before, scopes },
  notice: digestOf(notice),
});

/**
 * Changes a scope's offsets; null takes them away. True when something changed, which the schedulers then re-plan in the
 * background.
 */
export async function setScope(
  { pool, plan }: Pick<ReminderWorld, "pool" | "plan">,
  actor: KeyActor,
  scope: string,
  before: string[] | null,
): Promise<boolean> {
  const { tenant } = actor;
  const isChanged = await inTransaction(pool, async (tx) => {
    await lockDefaults(tx, tenant, "change");
    const known = await findDefaults(tx, tenant, [scope]);
    const isOther = before ? await putScope(tx, tenant, scope, before) : await deleteScope(tx, tenant, scope);
    if (!isOther) return false;
    await startReplan(tx, tenant, scope);
    const action = before ? "scope.keep" : "scope.delete";
    const object = { kind: "scope", name: scope };
    await writeAudit(tx, actor, { action, object, before: { before: known.get(scope) }, after: { before } });
    return true;
  });
  // Now: there is work to do.
  if (isChanged) plan(0);
  return isChanged;
}
