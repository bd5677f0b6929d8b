// The roles that deliver, as one process runs them: worker, scheduler, keeper. What one of them makes ready wakes the
// worker beside it at once, and those of other processes by a hint.

import { hostname } from "node:os";
import type { Config } from "#config/read.ts";
import type { Attempt } from "#domain/attempt.ts";
import { createIds } from "#domain/ids.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { priorityOf } from "#domain/priority.ts";
import { DEFAULT_RETRY, type RetryPolicy } from "#domain/retry.ts";
import type { Locked } from "#guards/lock/locked.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import type { Queue } from "#queue/queue.ts";
import { startKeeper } from "#roles/keeper.ts";
import { type RunningScheduler, startScheduler } from "#roles/scheduler.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import { continueBroadcasts } from "#steps/planned/broadcast.ts";
import type { Firing } from "#steps/planned/fire.ts";
import { fireReminders } from "#steps/planned/fire-reminders.ts";
import { replan } from "#steps/planned/remind.ts";
import { fireSchedules } from "#steps/planned/schedule.ts";
import { createAcceptWithin } from "#steps/walk/accept.ts";
import type { Ended, Fact, Unrendered } from "#steps/walk/deliver.ts";
import { findDevices } from "#steps/walk/find-devices.ts";
import { createSettle, type OnRefused, UNSAID } from "#steps/walk/settle.ts";
import { createSuppress } from "#steps/walk/suppress.ts";
import { sweep } from "#steps/walk/sweep.ts";
import type { Clock } from "#store/connection/clock.ts";
import type { Database } from "#store/connection/database.ts";
import { createDueHint, createReadyHint, listen } from "#store/connection/hint.ts";
import { readFigures } from "#store/counts.ts";
import { deactivateDevice, settledDevices } from "#store/devices.ts";
import { beat, registerWorker, signOff } from "#store/workers.ts";
import { createDeliveryMetrics, type DeliveryMetrics } from "#telemetry/delivery-metrics.ts";
import type { Logger } from "#telemetry/log.ts";
import type { Metrics } from "#telemetry/metrics.ts";
import type { Templates } from "#templates/load.ts";
import { told } from "#templates/template.ts";
import { createSingleflight } from "#timing/singleflight.ts";
import type { Channels } from "./channels.ts";
import { type Guards, openGuards } from "./guards.ts";
import { onListenerLost } from "./listener-lost.ts";
import { openLocks } from "./locks.ts";

export type DeliveryOptions = {
  config: Config;
  database: Database;
  clock: Pick<Clock, "now" | "nowMs">;
  url: string;
  channels: Channels;
  metrics: Metrics;
  log: Logger;
};
export type RunningDelivery = {
  /** Something was accepted here. */
  wake(): void;
  /** Something was planned here, for that instant of the database's clock. */
  plan(dueMs: number): void;
  /** From this very moment on nothing is claimed any more; resolves when what was under way has ended, or its time is over. */
  stop(): Promise<void>;
};

const BEAT_MS = 5_000;
/** Three missed beats. */
export const SILENT_MS = 15_000;
const SETTLE_LANES = 2;
/** More than a settlement takes from being decided to being told: a hint may be early, never late. */
const SETTLE_MS = 100;
/** Nothing is missed for longer than this, whatever became of the hints. */
const RECHECK_MS = 300_000;
/** What one transaction of a firing takes: about five times as much memory, and a fraction of a second. */
const CHUNK_BYTES = 2 * 1024 * 1024;

export async function startDelivery(options: DeliveryOptions): Promise<RunningDelivery> {
  const { config, database, url, log } = options;
  const figures = createDeliveryMetrics(options.metrics.registry);
  figures.watchQueue(
    () => readFigures(database.own, SILENT_MS),
    (error) => log.warn({ err: error }, "the queue's figures could not be read"),
  );
  const roles = new Set(config.roles);
  const hint = createReadyHint(database.own);
  const plan = createDueHint(database.own);
  if (!roles.has("worker") && !roles.has("scheduler") && !roles.has("keeper")) {
    return { wake: hint, plan, stop: async () => undefined };
  }

  const name = `${hostname()}-${process.pid}-${crypto.randomUUID()}`;
  const id = await registerWorker(database.own, name);
  const monotonic = () => performance.now();
  const queue = createPostgresQueue(database.work, monotonic, (ids) => {
    figures.gone.inc(ids.length);
    log.error({ notificationIds: ids.slice(0, 10), count: ids.length }, "in the queue but not in the record: let go");
  });
  const retry: RetryPolicy = { ...DEFAULT_RETRY, maxAttempts: config.maxAttempts };
  const stops: (() => Promise<void>)[] = [() => signOff(database.own, id).catch(() => undefined)];

  const guards = roles.has("worker") ? openGuards(options, { worker: id, queue, figures, monotonic }) : undefined;
  if (guards) stops.push(guards.stop);
  const locked = guards ? await openLocks({ ...options, name, monotonic }) : undefined;
  if (locked) stops.push(locked.close);
  const parts = { id, queue, retry, monotonic, figures, plan, locked };
  const worker = guards ? openWorker(options, { ...parts, guards }) : undefined;
  const wake = () => {
    worker?.wake();
    // Our own worker is up and will look; others need not be woken for what it can take.
    if (!worker || worker.isFull()) hint();
  };
  const loops: (() => Promise<void>)[] = [];
  if (worker) loops.push(() => worker.stop(config.drainMs));
  const scheduler = roles.has("scheduler") ? openScheduler(options, wake, monotonic) : undefined;
  if (scheduler) loops.push(scheduler.stop);
  if (worker || scheduler) {
    const listening = listen(url, {
      ...(worker && { onReady: worker.wake }),
      ...(scheduler && { onDue: scheduler.hint }),
      onLost: onListenerLost("listen", options),
    });
    loops.push(listening.stop);
  }
  if (roles.has("keeper")) {
    const { leaseMs, sweepMs, retentionDays } = config;
    const keeper = startKeeper({
      db: database.own,
      holder: name,
      sweep: (count) =>
        sweep({ queue, worker: id, count, leaseMs, retry, random: Math.random, onRefused: refusedTo(log) }),
      sweepMs,
      silentMs: SILENT_MS,
      retentionDays,
      onSwept: (leases) => figures.leasesSwept.inc(leases),
      log,
    });
    loops.push(keeper.stop);
  }
  const beating = setInterval(() => {
    beat(database.own, id, worker?.stats() ?? {}).catch((error: unknown) => log.debug({ err: error }, "no heartbeat"));
  }, BEAT_MS);

  async function stopAll(): Promise<void> {
    await Promise.all(loops.map((stop) => stop()));
    clearInterval(beating);
    for (let stop = stops.pop(); stop; stop = stops.pop()) await stop();
  }
  let stopped: Promise<void> | undefined;

  return {
    wake,
    plan,
    stop() {
      stopped ??= stopAll();
      return stopped;
    },
  };
}

function openScheduler(
  { database, clock, channels, log }: DeliveryOptions,
  onDue: () => void,
  monotonic: () => number,
): RunningScheduler {
  let isStopping = false;
  const firing: Firing = {
    pool: database.own,
    acceptWithin: createAcceptWithin({ newId: createIds(clock.nowMs), now: clock.now }),
    fill: channels.noticeTexts.fill,
    monotonic,
    chunkBytes: CHUNK_BYTES,
    onFailure: (what, error) => log.error({ err: error, ...what }, "could not be fired, and is put off"),
    isStopping: () => isStopping,
  };
  const scheduler = startScheduler({
    db: database.work,
    fireSchedules: (ofEach) => fireSchedules(firing, ofEach),
    fireReminders: (ofEach) => fireReminders(firing, ofEach),
    continueBroadcasts: () => continueBroadcasts(firing),
    replan: (batch) => replan(firing, batch),
    recheckMs: RECHECK_MS,
    onDue,
    wallClock: Date.now,
    monotonic,
    log,
  });
  return {
    ...scheduler,
    stop() {
      isStopping = true;
      return scheduler.stop();
    },
  };
}

type Parts = {
  id: number;
  queue: Queue;
  retry: RetryPolicy;
  monotonic: () => number;
  figures: DeliveryMetrics;
  plan: (dueMs: number) => void;
  guards: Guards;
  locked: Locked | undefined;
};

function openWorker({ config, database, channels, log }: DeliveryOptions, parts: Parts): RunningWorker {
  const { id, queue, retry, monotonic, figures, plan, guards, locked } = parts;
  const { leaseMs, batchSize, concurrency, pollMs, sendTimeoutMs } = config;
  const { providers, templates } = channels;
  const db = database.own;
  const settle = createSettle({
    queue,
    lanes: SETTLE_LANES,
    patienceMs: 2 * leaseMs,
    monotonic,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    onRefused: refusedTo(log),
  });
  const world = {
    route: providers.route,
    render: (tenant: number, request: NotificationRequest) => render(templates, tenant, request, log),
    push: {
      settledDevices: (notificationId: string) => settledDevices(db, notificationId).catch(unreadTo(log)),
      deactivate: (tenant: number, token: string, reason: string) =>
        deactivateDevice(db, tenant, token, reason)
          .catch(() => deactivateDevice(db, tenant, token, UNSAID))
          .catch((error: unknown) => log.warn({ err: error }, "a dead device could not be marked as such")),
    },
    ...(locked && { locked }),
    guard: guards.guard,
    notePostponed: guards.notePostponed,
    flights: createSingleflight<Ended>(),
    monotonic,
    random: Math.random,
    retry,
    tell: (fact: Fact) => {
      tell(fact, figures, monotonic(), log);
      if (fact.settlement.to === "pending" && !fact.isLost) plan(retryDueMs(fact, monotonic()));
    },
  };
  const suppress = createSuppress(db, monotonic);
  const prepare = (attempts: readonly Attempt[]): Promise<unknown> | undefined => {
    const [one, other] = [suppress(attempts), findDevices(db, attempts)];
    return one && other ? Promise.all([one, other]) : (one ?? other);
  };
  return startWorker({
    id,
    queue,
    settle,
    world,
    prepare,
    sendTimeoutMs,
    batchSize,
    concurrency,
    leaseMs,
    pollMs,
    log,
  });
}

async function render(
  templates: Templates,
  tenant: number,
  request: NotificationRequest,
  log: Logger,
): Promise<NotificationRequest | Unrendered> {
  const rendered = await templates.render(tenant, request).catch(unreadTo(log));
  if (!rendered) return { error: "the template cannot be read", isPassing: true };
  if (!("error" in rendered)) return rendered.request;
  return { error: told(rendered.error), isPassing: rendered.error.why !== undefined };
}

/** Nothing has left yet: an attempt that ended here without a word would be taken for one that may have been sent. */
const unreadTo = (log: Logger) => (error: unknown) => void log.warn({ err: error }, "what a send needs cannot be read");

const refusedTo =
  (log: Logger): OnRefused =>
  ({ attempt: { id: notificationId, number: attempt }, settlement }, error) =>
    log.error(
      { err: error, notificationId, attempt, to: settlement.to },
      "the database refuses what an attempt came to",
    );

/** When a retry will be due at the earliest, on the database's clock. */
function retryDueMs({ attempt: { lease }, settlement }: Fact, now: number): number {
  const waitMs = settlement.to === "pending" ? settlement.waitMs : 0;
  return lease.claimedAtMs + (now - lease.claimedAt) + waitMs - SETTLE_MS;
}

/** Facts become metrics and log lines here, and only here. */
function tell(fact: Fact, figures: DeliveryMetrics, now: number, log: Logger): void {
  const { attempt, outcome, settlement, provider, latencyMs, isLost } = fact;
  if (isLost) {
    figures.leasesLost.inc();
    log.warn(
      { notificationId: attempt.id, attempt: attempt.number, outcome: outcome.kind },
      "lease lost, nothing settled",
    );
    return;
  }
  if (outcome.kind === "released" || outcome.kind === "postponed") return;
  const { channel } = attempt.request;
  const priority = priorityOf(attempt.rank);
  const ending =
    settlement.to === "sent" ? figures.sent : settlement.to === "pending" ? figures.retried : figures.failed;
  ending.inc(channel, priority, outcome.kind);
  if (attempt.number === 1) {
    figures.queueWait.observe(priority, Math.max(0, attempt.lease.claimedAtMs - attempt.sinceMs) / 1000);
  }
  if (provider !== undefined) figures.provider.observe(provider, latencyMs / 1000);
  figures.processing.observe(channel, (now - attempt.lease.claimedAt) / 1000);
  if (settlement.to !== "sent") {
    const reason = "reason" in outcome ? outcome.reason : undefined;
    log.info(
      { notificationId: attempt.id, attempt: attempt.number, outcome: outcome.kind, reason, to: settlement.to },
      "attempt",
    );
  }
}
