// What everything in this process stands on: the configuration, the database with its clock and its queue, figures and log.

import type { Config } from "#config/read.ts";
import { type RetryPolicies, retryPolicies } from "#domain/retry-policy.ts";
import type { Limit } from "#guards/limit/limit.ts";
import { waitingCallbacks } from "#queue/postgres/depth.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import type { Queue } from "#queue/queue.ts";
import { readLag } from "#record/callback-lag.ts";
import { readFeedStanding } from "#record/feed-standing.ts";
import { FOLLOWER } from "#steps/calls/make-callbacks.ts";
import { listStandings } from "#steps/manage/connectors.ts";
import { readTrouble } from "#store/archiving.ts";
import type { Clock } from "#store/connection/clock.ts";
import { listenToClock } from "#store/connection/clock-hint.ts";
import type { Database } from "#store/connection/database.ts";
import { createHints, type Hints } from "#store/connection/hints.ts";
import { listTakes } from "#store/workers.ts";
import { createDeliveryMetrics, type DeliveryMetrics } from "#telemetry/delivery-metrics.ts";
import { createEngineFacts } from "#telemetry/engine-facts.ts";
import { Facts } from "#telemetry/facts.ts";
import type { Logger } from "#telemetry/log.ts";
import { createMetrics, type Metrics } from "#telemetry/metrics.ts";
import type { Siblings } from "#telemetry/siblings.ts";
import { createStalls, type Stalls } from "#telemetry/stalls.ts";
import { openTraces, type Traces } from "#telemetry/traces/traces.ts";
import type { Redis } from "#wire/redis.ts";
import { openClock, openStore } from "./database.ts";
import { type Engines, openEngines } from "./engines.ts";
import type { Ground } from "./ground.ts";
import { openLimit } from "./limit.ts";
import { SILENT_MS } from "./member.ts";
import type { Stop } from "./undo.ts";

export type Base = {
  config: Config;
  /** Of PostgreSQL itself, or a pooler of sessions: for whoever listens. */
  url: string;
  database: Database;
  clock: Clock;
  /** Never set back, and of no use but to measure how much time has passed. */
  monotonic: () => number;
  queue: Queue;
  /** Undefined where all that is ready waits in PostgreSQL. */
  engines: Engines | undefined;
  /** Taken from by whoever delivers, and looked at by whoever asks. */
  limit: Limit;
  /** Undefined where nothing is kept there. */
  redis: Redis | undefined;
  /** What is told to other processes. */
  hints: Hints;
  retry: RetryPolicies;
  facts: Facts;
  metrics: Metrics;
  figures: DeliveryMetrics;
  /** Undefined where no SDK for them is loaded. */
  traces: Traces | undefined;
  /** What is paused, and what nobody takes. */
  stalls: () => Promise<Stalls>;
  log: Logger;
  /** The other processes behind the same port; undefined where it serves alone. */
  siblings: Siblings | undefined;
};

/** What a process is given to stand on. */
export type Given = Pick<Base, "config" | "log" | "siblings"> & { ground: Ground };

export async function openBase(
  { config, log, ground, siblings }: Given,
  undo: Stop[],
  stopping?: AbortSignal,
): Promise<Base> {
  const metrics = createMetrics();
  siblings?.contribute(() => metrics.registry.getMetricsAsJSON());
  const figures = createDeliveryMetrics(metrics.registry);
  const facts = new Facts(log, metrics, figures);
  const traces = openTraces(config.traceParents);
  if (traces) undo.push(() => traces.flush());
  const database = openStore(config, ground, facts);
  undo.push(database.close);
  metrics.watchPools(database.pools);
  const clock = await openClock(database, facts, stopping);
  undo.push(async () => clock.stop());
  metrics.watchClock(clock.aheadMs);
  if (clock.movedMs() !== 0) log.warn({ movedMs: clock.movedMs() }, "the clock of this database was moved");
  if (config.development) undo.push(listenToClock(ground.url, () => clock.look().catch(() => undefined)).stop);
  const monotonic = () => performance.now();
  const engines = await openEngines(config, database, log, undo);
  const queue = createPostgresQueue(database.work, monotonic, {
    onGone: (ids) => facts.gone(ids),
    engines: engines?.engines,
    onEngineFailed: createEngineFacts(log, monotonic).failed,
  });
  const { limit, redis } = await openLimit(config, database, log, undo);
  const workers = () => listTakes(database.own, SILENT_MS);
  const stalls = createStalls({ db: database.own, queue, workers, monotonic });
  figures.watchQueue(
    async () => ({
      ...(await queue.figures(database.own)),
      ...(await stalls()),
      workers: (await workers()).length,
    }),
    (error) => facts.figuresUnread(error),
  );
  if (config.archive) {
    figures.archive.watchTrouble(
      () => readTrouble(database.own),
      (error) => facts.figuresUnread(error),
    );
  }
  figures.callbacks.watch(
    async () => ({
      waiting: await waitingCallbacks(database.own),
      lagMs: await readLag(database.own, FOLLOWER),
    }),
    (error) => facts.figuresUnread(error),
  );
  const connectors = connectorsOf(config, database);
  if (connectors) figures.connectors.watch(connectors, (error) => facts.figuresUnread(error));
  figures.feed.watch(
    () => readFeedStanding(database.own),
    (error) => facts.figuresUnread(error),
  );
  return {
    config,
    url: ground.url,
    database,
    clock,
    monotonic,
    queue,
    engines,
    limit,
    redis,
    hints: createHints(database.own),
    retry: retryPolicies(config.maxAttempts),
    facts,
    metrics,
    figures,
    traces,
    stalls,
    log,
    siblings,
  };
}

/** How sources and sinks stand; undefined where none is configured. */
export function connectorsOf({ sources, sinks }: Config, { own: db }: Pick<Database, "own">) {
  const configured = { source: sources, sink: sinks };
  const isNone = Object.values(configured).every((named) => Object.keys(named).length === 0);
  return isNone ? undefined : () => listStandings({ db, configured });
}
