// Forgets people who asked for it, batch by batch: each is a transaction that also notes how far it came, so a crash loses nothing and
// whoever comes next goes on.
//
// First what would send them more: broadcasts, schedules, reminders. Then what was sent: what waits is cancelled, what a worker has in hand is
// passed over and looked at again when it has ended. Last what others were told of it. What was accepted since is somebody's new business and stays.

import type { Notice } from "#domain/notice.ts";
import type { Queue } from "#queue/queue.ts";
import {
  blank,
  blankCallbacks,
  findAddresses,
  findCallbacks,
  findTraces,
  NO_ID,
  type Trace,
} from "#record/forgotten.ts";
import { forgetUserInPlans } from "#record/plans.ts";
import { FOLLOWER, REPLAYS } from "#steps/calls/make-callbacks.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import {
  advanceDeletion,
  type DeletionJob,
  dueDeletions,
  PHASES,
  type Phase,
  type Progress,
  putOffDeletion,
  takeDeletion,
} from "#store/deletions.ts";
import { deleteDevicesOf } from "#store/devices.ts";
import { deleteItems } from "#store/inbox.ts";
import { waitAlone } from "#store/leadership.ts";
import { changeNotice, deleteNotice, findNamed, type NamedNotice, type NoticeTable, sentSince } from "#store/named.ts";
import { veilSuppressions } from "#store/suppressions.ts";
import { type Firing, fireAlone } from "./fire.ts";

type ForgettingQueue = Pick<Queue, "cancelAll">;

const BATCH = 500;
/** Of callbacks as many are looked at, of which few are about somebody. */
const LOOKED = 2_000;
/** What a worker has in hand ends within its lease, as a rule much sooner; so does somebody's open transaction. */
const AGAIN_MS = 1_000;
const SCHEDULER = { kind: "process", what: "scheduler" } as const;

/** A batch for every tenant of which somebody is being forgotten; answers with how many. */
export async function forgetUsers(
  firing: Pick<Firing, "pool" | "onFailure" | "isStopping">,
  queue: ForgettingQueue,
): Promise<number> {
  const { pool } = firing;
  let done = 0;
  for (const { tenant, pseudonym } of await dueDeletions(pool)) {
    if (firing.isStopping()) break;
    const wasOurs = await fireAlone(
      firing,
      { tenant, name: `deletion ${pseudonym}` },
      () => inTransaction(pool, (tx) => forgetSome(tx, queue, tenant, pseudonym)),
      () => putOffDeletion(pool, tenant, pseudonym),
    );
    if (wasOurs !== false) done += 1;
  }
  return done;
}

async function forgetSome(tx: Queryable, queue: ForgettingQueue, tenant: number, pseudonym: string): Promise<boolean> {
  const job = await takeDeletion(tx, tenant, pseudonym);
  if (!job) return false;
  const progress = await progressOf(tx, queue, job);
  await advanceDeletion(tx, job, progress);
  if (progress.phase === "done") {
    const after = { notifications: job.blanked };
    await writeAudit(tx, SCHEDULER, {
      action: "user.deleted",
      object: { kind: "user", name: job.userId },
      tenant,
      after,
    });
  }
  return true;
}

async function progressOf(tx: Queryable, queue: ForgettingQueue, job: DeletionJob): Promise<Progress> {
  const { tenant, userId, requestedAt, phase } = job;
  switch (phase) {
    case "broadcasts":
    case "schedules":
    case "reminders":
      return withoutNotices(tx, job, phase);
    case "notifications":
      return blankSome(tx, queue, job);
    case "inbox": {
      const count = await deleteItems(tx, { tenant, userId }, requestedAt, BATCH);
      return count === BATCH ? {} : after(phase);
    }
    case "devices":
      await deleteDevicesOf(tx, tenant, userId, requestedAt);
      await forgetUserInPlans(tx, tenant, userId);
      return after(phase);
    case "callbacks":
      return blankCalls(tx, queue, job);
    case "done":
      return {};
  }
}

const after = (phase: Phase): Progress => ({ phase: PHASES[PHASES.indexOf(phase) + 1] ?? "done", reached: "" });

async function withoutNotices(tx: Queryable, job: DeletionJob, table: NoticeTable): Promise<Progress> {
  const { tenant, userId } = job;
  const { named, next } = await findNamed(tx, table, job, job.reached, BATCH);
  const keys = named.map(({ key }) => key);
  const since = table === "broadcasts" ? [] : await sentSince(tx, table, job, keys);
  for (const one of named) {
    const rest = without(one, userId);
    if (rest) await changeNotice(tx, table, tenant, rest);
    else await deleteNotice(tx, table, tenant, one.key);
  }
  const progress = next === undefined ? after(table) : { reached: next };
  return { ...progress, madeSince: [...job.madeSince, ...since] };
}

/** What is left of it for others; undefined where it was for nobody else. */
function without({ key, notice, reached }: NamedNotice, userId: string): NamedNotice | undefined {
  const others = (recipients: Notice["recipients"]) => recipients?.filter((one) => one.userId !== userId) ?? [];
  const recipients = others(notice.recipients);
  if (recipients.length === 0) return undefined;
  // Whoever has theirs already is not counted again.
  return { key, notice: { ...notice, recipients }, reached: others(notice.recipients?.slice(0, reached)).length };
}

async function blankSome(tx: Queryable, queue: ForgettingQueue, job: DeletionJob): Promise<Progress> {
  const { tenant, reached, isSettled } = job;
  const traces = await findTraces(tx, job, reached, BATCH);
  const ended = await endedOf(tx, queue, tenant, traces);
  if (ended.length > 0) {
    await veilSuppressions(tx, tenant, await findAddresses(tx, tenant, ended));
    await blank(tx, tenant, ended);
  }
  // What somebody's open transaction brings may lie before where this has come: then it is not the last time.
  const isClean = job.isClean && isSettled && ended.length === traces.length;
  const blanked = job.blanked + ended.length;
  if (traces.length === BATCH) return { reached: traces.at(-1)?.id ?? "", isClean, blanked };
  if (isClean) return { ...after("notifications"), blanked };
  return { reached: "", isClean: true, blanked, waitMs: AGAIN_MS };
}

/** What waits for an endpoint goes there without telling of anybody; what waits for the URL that a request named is cancelled. */
async function blankCalls(tx: Queryable, queue: ForgettingQueue, job: DeletionJob): Promise<Progress> {
  const { tenant, reached } = job;
  // Who is just making callbacks may have read what has become blank since: theirs are looked at, too.
  // The caller is everybody's, and waits for nothing but this wait: the looking is left for the next time.
  if (reached === "") {
    await waitAlone(tx, REPLAYS);
    await waitAlone(tx, FOLLOWER);
    return { reached: NO_ID };
  }
  const { callbacks, next } = await findCallbacks(tx, tenant, reached, LOOKED);
  const forRequests = callbacks.filter(({ isForRequest }) => isForRequest);
  const others = callbacks.filter(({ isForRequest, status }) => !isForRequest && status !== "processing");
  const blankable = [...(await endedOf(tx, queue, -tenant, forRequests)), ...others.map(({ id }) => id)];
  if (blankable.length > 0) await blankCallbacks(tx, tenant, blankable);
  const isClean = job.isClean && blankable.length === callbacks.length;
  if (next !== undefined) return { reached: next, isClean };
  return isClean ? after("callbacks") : { reached: "", isClean: true, waitMs: AGAIN_MS };
}

/** What waits is cancelled. What a worker has in hand, or was just handed back, is looked at again. */
async function endedOf(
  tx: Queryable,
  queue: ForgettingQueue,
  tenant: number,
  traces: readonly Trace[],
): Promise<string[]> {
  const isWaiting = ({ status }: Trace) => status === "queued" || status === "pending";
  const cancelled = await queue.cancelAll(
    tx,
    tenant,
    traces.filter(isWaiting).map(({ id }) => id),
  );
  const over = traces.filter((trace) => !isWaiting(trace) && trace.status !== "processing");
  return [...cancelled, ...over.map(({ id }) => id)];
}
