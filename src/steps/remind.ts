// Reminders: planned when they or what they inherit from change, sent when a line of the plan is due.
//
// Planning and sending meet at the row of the plan: whoever locks it first decides, and the other sees what was done.

import type pg from "pg";
import { type Notice, requestsOf } from "../domain/notice.ts";
import type { NotificationRequest } from "../domain/notification.ts";
import { planOf, resolveOffsets, TENANT_SCOPE } from "../domain/reminder.ts";
import { inTransaction, type Queryable, trying } from "../store/database.ts";
import {
  deleteScope,
  nextMembers,
  peekReplan,
  putScope,
  recordReplan,
  setOffsets,
  startReplan,
  takeReplan,
} from "../store/reminder-scopes.ts";
import {
  type DueLine,
  type EndedLine,
  endLines,
  findDefaults,
  lockDefaults,
  putReminder,
  replacePlans,
  type StoredReminder,
  takeDueLines,
} from "../store/reminders.ts";
import { fillNotice } from "../templates/inline.ts";
import { type AcceptWithin, type Outcome, summaryOf } from "./accept.ts";

export type ReminderRequest = {
  at: Date;
  timezone: string;
  before: string[] | null;
  scopes: string[];
  notice: Notice;
};

/** Stores it and puts its new plan in the place of the old one. */
export function keepReminder(
  pool: pg.Pool,
  tenant: number,
  key: string,
  given: ReminderRequest,
): Promise<StoredReminder & { isNew: boolean }> {
  return inTransaction(pool, async (tx) => {
    await lockDefaults(tx, tenant, "read");
    const defaults = await findDefaults(tx, tenant, [...given.scopes, TENANT_SCOPE]);
    const { before: offsets, from: offsetsFrom } = resolveOffsets(given.before, given.scopes, defaults);
    const { now, ...stored } = await putReminder(tx, { tenant, key, ...given, offsets, offsetsFrom });
    await replacePlans(tx, tenant, [{ key, at: given.at, lines: planOf(given.at, offsets, given.timezone, now) }]);
    return stored;
  });
}

/** Changes a scope's offsets; null takes them away. True when something changed, which is then re-planned in the background. */
export function keepScope(pool: pg.Pool, tenant: number, scope: string, before: string[] | null): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    await lockDefaults(tx, tenant, "change");
    const isChanged = before ? await putScope(tx, tenant, scope, before) : await deleteScope(tx, tenant, scope);
    if (isChanged) await startReplan(tx, tenant, scope);
    return isChanged;
  });
}

/** One batch of a re-plan, and a note of how far it came, in one commit. False when there is nothing to do. */
export function replan(pool: pg.Pool, limit: number): Promise<boolean> {
  return inTransaction(pool, async (tx) => {
    const tenant = await peekReplan(tx);
    if (tenant === undefined) return false;
    // The same order as a change of a scope, so that neither waits for the other for ever.
    await lockDefaults(tx, tenant, "read");
    const step = await takeReplan(tx, tenant);
    if (!step) return false;
    const members = await nextMembers(tx, step, limit);
    await replanMembers(tx, tenant, members);
    const isOver = members.length < limit;
    await recordReplan(tx, step, { reached: members.at(-1)?.key ?? step.reached, done: members.length, isOver });
    return true;
  });
}

async function replanMembers(
  tx: Queryable,
  tenant: number,
  members: (StoredReminder & { now: Date })[],
): Promise<void> {
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
    changed.map(({ reminder: { key, at, timezone, now }, before }) => ({
      key,
      at,
      lines: planOf(at, before, timezone, now),
    })),
  );
}

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item, n) => item === b[n]);

/** Sends what is due, up to `limit` lines of plans; returns how many it looked at. */
export function fireReminders(pool: pg.Pool, acceptWithin: AcceptWithin, limit: number): Promise<number> {
  return inTransaction(pool, async (tx) => {
    const due = await takeDueLines(tx, limit);
    const ended: EndedLine[] = [];
    for (const tenant of new Set(due.map((line) => line.tenant))) {
      const lines = due.filter((line) => line.tenant === tenant).map(prepare);
      // All at once; if the database refuses that, one by one finds the line that is to blame.
      const all = await trying(tx, () => send(tx, acceptWithin, tenant, lines));
      if (!(all instanceof Error)) ended.push(...all);
      else for (const line of lines) ended.push(...(await sendAlone(tx, acceptWithin, tenant, line)));
    }
    if (ended.length > 0) await endLines(tx, ended);
    return due.length;
  });
}

type Ready = { line: DueLine; requests: NotificationRequest[]; outcome?: EndedLine["outcome"]; error?: string };

/** A text that cannot be filled fails its own line, never the others. */
function prepare(line: DueLine): Ready {
  const { key, at, before, dueAt, notice, now } = line;
  // The event has begun: nobody wants to be told any more that it will.
  if (now >= at && dueAt < at) return { line, requests: [], outcome: "missed" };
  try {
    const filled = fillNotice(notice, { at: at.toISOString(), before, key });
    const until = dueAt < at ? { expiresAt: at.toISOString() } : {};
    return { line, requests: requestsOf(filled).map((request) => ({ ...request, ...until })) };
  } catch (error) {
    return { line, requests: [], error: error instanceof Error ? error.message : String(error) };
  }
}

async function send(tx: Queryable, acceptWithin: AcceptWithin, tenant: number, lines: Ready[]): Promise<EndedLine[]> {
  const requests = lines.flatMap((line) => line.requests);
  const outcomes = requests.length > 0 ? await acceptWithin(tx, tenant, requests) : [];
  let from = 0;
  return lines.map((line) => {
    const mine = outcomes.slice(from, from + line.requests.length);
    from += line.requests.length;
    return endOf(line, mine);
  });
}

async function sendAlone(tx: Queryable, acceptWithin: AcceptWithin, tenant: number, line: Ready): Promise<EndedLine[]> {
  const sent = await trying(tx, () => send(tx, acceptWithin, tenant, [line]));
  return sent instanceof Error ? [endOf(line, sent)] : sent;
}

function endOf({ line, outcome, error }: Ready, outcomes: Outcome[] | Error): EndedLine {
  const { id, tenant, key, at, before } = line;
  const summary = summaryOf(outcomes);
  return {
    id,
    tenant,
    key,
    at,
    before,
    notifications: summary.notifications,
    error: error ?? summary.error,
    outcome: outcome ?? (summary.notifications.length > 0 ? "sent" : "failed"),
  };
}
