// Sends the lines of reminders' plans that are due: as many in one transaction as it holds, of one tenant at a time.
//
// Their texts are filled before the transaction begins, which is therefore short whatever a tenant wrote. The lines are then
// locked: one that was changed meanwhile is not there any more, and its successor is seen to next time.

import { requestsOf } from "#domain/notice.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { type AcceptWithin, acceptEach, summaryOf } from "#steps/walk/accept.ts";
import { insertBroadcast } from "#store/broadcasts.ts";
import { inTransaction, isOutage, isTooSlow, type Queryable } from "#store/connection/database.ts";
import {
  type DueLine,
  type DueRef,
  dueLines,
  type EndedLine,
  endLines,
  lockLines,
  putOffLine,
  readLines,
} from "#store/reminders.ts";
import { createTurn, type FilledNotice, type Fired, type Firing, filled, fireAlone, MOST_FAILURES } from "./fire.ts";

/** Sends what is due, up to `ofEach` lines of every tenant; returns how many it sent or put off. */
export async function fireReminders(firing: Firing, ofEach: number): Promise<number> {
  const isOver = createTurn(firing);
  let done = 0;
  for (const batch of batchesOf(await dueLines(firing.pool, ofEach), firing.chunkBytes)) {
    if (batch[0] && isOver(batch[0].tenant)) continue;
    const lines = await readLines(
      firing.pool,
      batch.map(({ id }) => id),
    );
    done += await sendLines(firing, await prepare(firing, lines, isOver));
  }
  return done;
}

/** As many of one tenant's as a transaction takes. They come in order of tenants. */
function* batchesOf(due: readonly DueRef[], mostBytes: number): Generator<DueRef[]> {
  let batch: DueRef[] = [];
  let bytes = 0;
  for (const ref of due) {
    bytes += ref.bytes;
    if (batch.length > 0 && (bytes > mostBytes || batch[0]?.tenant !== ref.tenant)) {
      yield batch;
      batch = [];
      bytes = ref.bytes;
    }
    batch.push(ref);
  }
  if (batch.length > 0) yield batch;
}

type Ready = { line: DueLine } & FilledNotice;

const nameOf = ({ tenant, key }: DueLine): Fired => ({ tenant, name: `reminder ${key}` });

/**
 * Fills the texts. One that cannot be filled fails its own line, never the others. What filling has made too much for one
 * transaction, or for one turn, is left for the next.
 */
async function prepare(
  firing: Firing,
  lines: readonly DueLine[],
  isOver: (tenant: number) => boolean,
): Promise<Ready[]> {
  const ready: Ready[] = [];
  let bytes = 0;
  for (const [n, line] of lines.entries()) {
    // One is always seen to: on a slow machine reading them takes a turn by itself.
    if (n > 0 && isOver(line.tenant)) break;
    const one = await fireAlone(
      firing,
      nameOf(line),
      () => fillLine(firing, line),
      (reason) => putOffLine(firing.pool, line.id, reason, MOST_FAILURES),
    );
    if (!one) continue;
    bytes += "bytes" in one ? one.bytes : 0;
    if (ready.length > 0 && bytes > firing.chunkBytes) break;
    ready.push(one);
  }
  return ready;
}

async function fillLine(firing: Firing, line: DueLine): Promise<Ready> {
  const { tenant, key, at, before, notice } = line;
  return { line, ...(await filled(firing, tenant, notice, { at: at.toISOString(), before, key })) };
}

/** All at once; if that fails, one by one finds the line that is to blame, and puts it off. */
async function sendLines(firing: Firing, ready: readonly Ready[]): Promise<number> {
  const { pool } = firing;
  const [first] = ready;
  if (!first) return 0;
  const act = () => inTransaction(pool, (tx) => send(tx, firing, ready));
  if (ready.length === 1) {
    const putOff = (reason: string) => putOffLine(pool, first.line.id, reason, MOST_FAILURES);
    return (await fireAlone(firing, nameOf(first.line), act, putOff)) ?? 1;
  }
  try {
    return await act();
  } catch (error) {
    if (isOutage(error) && !isTooSlow(error)) throw error;
    let done = 0;
    for (const one of ready) done += await sendLines(firing, [one]);
    return done;
  }
}

/** Returns how many of them were ours to send. */
async function send(tx: Queryable, { acceptWithin, chunkBytes }: Firing, ready: readonly Ready[]): Promise<number> {
  const { held, now } = await lockLines(
    tx,
    ready.map(({ line }) => line.id),
  );
  const ended: EndedLine[] = [];
  const sent: { line: DueLine; requests: NotificationRequest[] }[] = [];
  for (const one of ready.filter(({ line }) => held.has(line.id))) {
    const { line } = one;
    const { id, tenant, at, dueAt } = line;
    const expiresAt = dueAt < at ? at : null;
    // The event has begun: nobody wants to be told any more that it will.
    if (expiresAt && expiresAt <= now) ended.push(endOf(line, "missed"));
    else if ("error" in one) ended.push(endOf(line, "failed", { error: one.error }));
    else if (one.bytes > chunkBytes) {
      await insertBroadcast(tx, { lineId: id }, { tenant, notice: one.notice, expiresAt });
      ended.push(endOf(line, "sending"));
    } else {
      const until = expiresAt ? { expiresAt: expiresAt.toISOString() } : {};
      sent.push({ line, requests: requestsOf(one.notice).map((request) => ({ ...request, ...until })) });
    }
  }
  ended.push(...(await acceptLines(tx, acceptWithin, sent)));
  if (ended.length > 0) await endLines(tx, ended);
  return ended.length;
}

async function acceptLines(
  tx: Queryable,
  acceptWithin: AcceptWithin,
  sent: readonly { line: DueLine; requests: NotificationRequest[] }[],
): Promise<EndedLine[]> {
  const [first] = sent;
  if (!first) return [];
  const all = sent.flatMap(({ requests }) => requests);
  const outcomes = await acceptEach(tx, acceptWithin, first.line.tenant, all);
  let from = 0;
  return sent.map(({ line, requests: { length } }) => {
    const summary = summaryOf(outcomes.slice(from, from + length));
    from += length;
    return endOf(line, summary.notifications.length > 0 ? "sent" : "failed", summary);
  });
}

function endOf(
  { id, tenant, key, at, before }: DueLine,
  outcome: EndedLine["outcome"],
  { notifications = [], error = null }: Partial<Pick<EndedLine, "notifications" | "error">> = {},
): EndedLine {
  return { id, tenant, key, at, before, outcome, notifications, error };
}
