// The chores of the keeper. A new one is one more entry here, and a line of docs/operations.md.

import type { ArchiveFacts } from "#archive/retire.ts";
import type { RetireWork } from "#archive/retire-thread.ts";
import { retireInThread } from "#archive/retiring.ts";
import type { Engine } from "#queue/engine.ts";
import { advanceSome } from "#queue/postgres/lines.ts";
import { auditOn } from "#queue/postgres/move-audits.ts";
import { findMove, type Move, moveOn } from "#queue/postgres/moves.ts";
import type { Queue } from "#queue/queue.ts";
import { forgetMarkers } from "#record/callback-facts.ts";
import { keepFeed } from "#record/feed-days.ts";
import { forgetPlans } from "#record/plans.ts";
import { applyReports, forgetReports } from "#record/reports.ts";
import { coarsen, spreadFresh } from "#record/tallies.ts";
import type { Chore } from "#roles/house.ts";
import { forgetAudit, makeAuditMonths } from "#store/audit.ts";
import type { Queryable } from "#store/connection/database.ts";
import { forgetRefusals } from "#store/connectors.ts";
import { purgeDevices } from "#store/devices.ts";
import { forgetExpiredKeys, forgetPast, inBatches, makePartitions, retire } from "#store/housekeeping.ts";
import { deliverAcked, forgetItems } from "#store/inbox.ts";
import { forgetSessions } from "#store/sessions.ts";
import { buryWorkers } from "#store/workers.ts";

export type ChoreOptions = {
  queue: Pick<Queue, "expire" | "bringBack">;
  /** What ready work waits in besides PostgreSQL; `ready`: something may be claimed. */
  tended?: { engines: readonly Engine[]; ready: () => void } | undefined;
  /** How often those come round that somebody waits for. */
  sweepMs: number;
  /** A worker silent for this long is gone. */
  silentMs: number;
  retentionDays: number;
  auditDays: number;
  feedDays: number;
  /** Where weeks go before they are dropped, and the database that the thread goes to which takes them there. */
  archive?: (Pick<RetireWork, "url" | "settings"> & { facts: ArchiveFacts }) | undefined;
  /** What a move's audit found. */
  onAudited?: (move: Move) => void;
};

const TEND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** What comes round every few seconds must not take as long. */
const SHORT_MS = 3_000;
/** The server ends it before we would give its connection up and leave it running. */
const LONG_MS = 7_000;
/** A fraction of a second on a slow disk. */
const ROWS = 1_000;

export function choresOf(options: ChoreOptions): Chore[] {
  const { queue, tended, sweepMs, silentMs, retentionDays: days, auditDays, feedDays, archive, onAudited } = options;
  const often = { isUrgent: true, everyMs: sweepMs, limitMs: SHORT_MS, size: ROWS, level: "debug" } as const;
  const hourly = { isUrgent: false, everyMs: HOUR_MS, limitMs: LONG_MS, size: ROWS, level: "info" } as const;
  const batches =
    (act: (db: Queryable, count: number) => Promise<number>): Chore["begin"] =>
    (db, size) =>
      inBatches(size, (count) => act(db, count));
  return [
    { name: "expire", ...often, begin: batches(queue.expire) },
    // What a resume left, and what was put aside by whoever had not heard of it.
    { name: "resumed", ...often, begin: batches(queue.bringBack) },
    { name: "migration", ...often, everyMs: TEND_MS, size: 100, begin: moving() },
    { name: "move audit", ...often, everyMs: TEND_MS, size: 5_000, begin: auditing(onAudited) },
    // What a crash left unoffered, and what an engine forgot.
    ...(tended?.engines ?? []).map((engine) => ({
      name: engine.name,
      ...often,
      everyMs: TEND_MS,
      begin: tending(engine, tended?.ready),
    })),
    // Reports that outran our own commit find their receipts now.
    { name: "reports", ...often, begin: batches(applyReports) },
    // Readers of inboxes may be as fast.
    { name: "acks", ...often, begin: batches(async (db, n) => (await deliverAcked(db, undefined, n)).moved) },
    // What a crash left: the next of a line that nobody told.
    { name: "lines", ...often, begin: advanceLines() },
    { name: "fresh tallies", ...often, everyMs: MINUTE_MS, size: 5_000, begin: batches(spreadFresh) },
    { name: "workers", ...often, begin: batches((db, n) => buryWorkers(db, silentMs, n)) },
    { name: "partitions", ...hourly, size: 1, begin: makePartitions },
    // What the record has forgotten cannot be told.
    { name: "feed", ...hourly, begin: (db, size) => keepFeed(db, Math.min(feedDays, days), size) },
    { name: "old refusals", ...hourly, begin: batches((db, n) => forgetRefusals(db, feedDays, n)) },
    { name: "keys", ...hourly, begin: batches(forgetExpiredKeys) },
    { name: "sessions", ...hourly, begin: batches(forgetSessions) },
    {
      name: "retention",
      ...hourly,
      begin: (db, size) =>
        archive ? retireInThread(workOf(archive, days, size), archive.facts) : retire(db, days, size),
    },
    { name: "past", ...hourly, begin: batches((db, n) => forgetPast(db, days, n)) },
    { name: "old plans", ...hourly, begin: batches((db, n) => forgetPlans(db, days, n)) },
    { name: "callback markers", ...hourly, begin: batches((db, n) => forgetMarkers(db, days, n)) },
    { name: "old reports", ...hourly, begin: batches((db, n) => forgetReports(db, days, n)) },
    { name: "devices", ...hourly, begin: batches((db, n) => purgeDevices(db, days, n)) },
    { name: "audit months", ...hourly, size: 1, begin: makeAuditMonths },
    { name: "old audit lines", ...hourly, begin: batches((db, n) => forgetAudit(db, auditDays, n)) },
    // What is coarser has counted the same.
    { name: "old tallies", ...hourly, begin: batches(coarsen) },
    { name: "inbox items", ...hourly, begin: batches((db, n) => forgetItems(db, days, n)) },
  ];
}

const workOf = ({ url, settings }: Pick<RetireWork, "url" | "settings">, days: number, batch: number): RetireWork => ({
  url,
  settings,
  limitMs: LONG_MS,
  days,
  batch,
});

/** Whoever sleeps is told what was offered late. */
const tending = (engine: Engine, ready?: () => void): Chore["begin"] =>
  async function* (db, size) {
    for await (const offered of engine.tend(db, size)) {
      if (offered > 0) ready?.();
      yield offered;
    }
  };

/** Handoffs, not notifications: a step takes on so many of them. */
const moving = (): Chore["begin"] =>
  async function* (db, size) {
    for (;;) {
      const { moved, overId } = await moveOn(db, size);
      yield moved;
      if (moved === 0 || overId !== undefined) return;
    }
  };

/** Two steps in a round: what is looked at in a second takes a fraction of it. */
const auditing = (onAudited?: (move: Move) => void): Chore["begin"] =>
  async function* (db, size) {
    for (let steps = 0; steps < 2; steps++) {
      const { looked, id, isOver } = await auditOn(db, size);
      const move = isOver ? await findMove(db, id) : undefined;
      if (move) onAudited?.(move);
      yield looked;
      if (id === undefined) return;
    }
  };

/** There may be a line for each notification: a round goes on where the one before it ended. */
function advanceLines(): Chore["begin"] {
  let lookedAt = "";
  return async function* (db, size) {
    lookedAt = await advanceSome(db, lookedAt, size);
    yield 0;
  };
}
