// The only wiring: config in, roles running out.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "#config/read.ts";
import { createIds } from "#domain/ids.ts";
import { DEFAULT_RETRY } from "#domain/retry.ts";
import { startEmbedded } from "#embedded/embedded.ts";
import { assertPortIsFree } from "#http/core/free-port.ts";
import { createRequestTurns } from "#http/core/turns.ts";
import { startStream } from "#roles/stream.ts";
import { makeFirstKey } from "#steps/manage/keys.ts";
import { type Accept, createAccept } from "#steps/walk/accept.ts";
import { type Clock, startClock } from "#store/connection/clock.ts";
import { type Database, isOutage, LARGE_CONNECTIONS, openDatabase } from "#store/connection/database.ts";
import { createInboxHint } from "#store/connection/inbox-hint.ts";
import { inspectServer, migrate } from "#store/connection/migrate.ts";
import { refuseSharedSessions } from "#store/connection/pooler.ts";
import { refusalOf, UnusableDatabaseError } from "#store/connection/refusals.ts";
import { readNews } from "#store/inbox-news.ts";
import type { Logger } from "#telemetry/log.ts";
import { createMetrics, type Metrics } from "#telemetry/metrics.ts";
import { createStreamMetrics } from "#telemetry/stream-metrics.ts";
import { startApi } from "#wiring/api.ts";
import { openChannels } from "#wiring/channels.ts";
import { SILENT_MS, startDelivery } from "#wiring/delivery.ts";
import { onListenerLost } from "#wiring/listener-lost.ts";

export const VERSION: string = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version;

const WAIT_FOR_DATABASE_MS = 30_000;
/** For so long a refused send says more than a small write that succeeds. */
const REFUSED_MS = 5_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export type Running = { url: string; stop(): Promise<void> };

/** Starts everything the roles ask for. `print` gets the few lines that a person must see. */
export async function start(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  stopping?: AbortSignal,
): Promise<Running> {
  const undo: (() => Promise<void>)[] = [];
  try {
    await assertPortIsFree(config.host, config.port);
    const server = await reachDatabase(config, log);
    const { url } = server;
    undo.push(server.stop);
    const applied = await prepareDatabase(server, log, stopping);
    if (applied.length > 0) log.info({ applied }, "migrated the database");

    const metrics = createMetrics();
    const database = openStore(config, server, log);
    undo.push(database.close);
    metrics.watchPools(database.pools);
    const clock = await whenReachable(() => openClock(database, log), log, stopping);
    undo.push(async () => clock.stop());
    metrics.watchClock(clock.aheadMs);
    if (config.apiKey === undefined) {
      const key = await makeFirstKey(database.own, { kind: "process", what: "start" });
      if (key !== undefined) print(`admin key, shown only this once: ${key}`);
    }

    const hintInboxes = createInboxHint(database.own);
    const channels = await openChannels({ config, database, clock, hintInboxes, log, print });
    undo.push(channels.close);
    metrics.watchDisabledAccounts(channels.providers.disabledCount);
    const delivery = await startDelivery({ config, database, clock, url, channels, metrics, log });
    undo.push(delivery.stop);
    let refusedAt = Number.NEGATIVE_INFINITY;
    const accept = openAccept(config, database, clock, {
      metrics,
      wake: delivery.wake,
      plan: delivery.plan,
      onStored: (isStored) => {
        refusedAt = isStored ? Number.NEGATIVE_INFINITY : performance.now();
      },
    });
    undo.push(accept.close);
    metrics.watchWaiting(accept.waitingRows);
    const { host, port, apiKey, secretKeys, publicUrl, maxAttempts, drainMs, allowOrigins } = config;
    const { maxStreams, streamsPerUser: perUser } = config;
    const turns = createRequestTurns({ small: config.databaseConnections, large: LARGE_CONNECTIONS });
    const stream = config.roles.includes("stream")
      ? startStream({
          db: database.own,
          clock,
          read: (readings) => turns.small(readings[0]?.tenant ?? 0, () => readNews(database.small, readings)),
          url,
          maxStreams,
          perUser,
          onLost: onListenerLost("stream", { log, metrics }),
          metrics: createStreamMetrics(metrics.registry),
          log,
        })
      : undefined;
    if (stream) undo.push(stream.stop);
    const servesV1 = config.roles.includes("api");
    const { wake, plan } = delivery;
    const api = await startApi({
      host,
      port,
      apiKey,
      secretKeys,
      publicUrl,
      retry: { ...DEFAULT_RETRY, maxAttempts },
      channels,
      version: VERSION,
      servesV1,
      isDevelopment: config.databaseUrl === undefined,
      database,
      clock,
      accept,
      wake,
      plan,
      silentMs: SILENT_MS,
      hintInboxes,
      hub: stream?.hub,
      turns,
      areSendsRefused: () => performance.now() - refusedAt < REFUSED_MS,
      allowOrigins,
      log,
      metrics,
    });
    // At once, so that nothing is claimed while requests end, and one limit of time holds for all.
    undo.push(async () => void (await Promise.all([api.stop(drainMs), delivery.stop()])));

    print(`carillon listening on ${api.url}`);
    return { url: api.url, stop: () => unwind(undo) };
  } catch (error) {
    await unwind(undo);
    throw error;
  }
}

/** What was started last is stopped first. */
export async function unwind(undo: (() => Promise<void>)[]): Promise<void> {
  for (let stop = undo.pop(); stop; stop = undo.pop()) await stop();
}

export type Reached = {
  /** PostgreSQL itself, or a pooler of sessions. */
  url: string;
  /** For the pools: what is not the same leads through a pooler that shares sessions. */
  poolUrl: string;
  isEmbedded: boolean;
  stop(): Promise<void>;
};

export async function reachDatabase(
  { databaseUrl, databaseDirectUrl, home }: Pick<Config, "databaseUrl" | "databaseDirectUrl" | "home">,
  log: Logger,
): Promise<Reached> {
  if (databaseUrl !== undefined) {
    const url = databaseDirectUrl ?? databaseUrl;
    return { url, poolUrl: databaseUrl, isEmbedded: false, stop: async () => {} };
  }
  const { url, stop } = await startEmbedded({
    home,
    onNote: (message, details) => log.info(details ?? {}, message),
  });
  return { url, poolUrl: url, isEmbedded: true, stop };
}

/** Answers with the migrations that were applied. */
export const prepareDatabase = ({ url, isEmbedded }: Reached, log: Logger, stopping?: AbortSignal): Promise<string[]> =>
  whenReachable(
    async () => {
      if (!isEmbedded) await refuseSharedSessions(url);
      return migrate(url);
    },
    log,
    stopping,
  );

export function openStore(
  config: Pick<Config, "acceptLanes" | "databaseConnections">,
  { url, poolUrl = url }: Pick<Reached, "url"> & Partial<Reached>,
  log: Logger,
): Database {
  return openDatabase({
    url: poolUrl,
    isShared: poolUrl !== url,
    acceptConnections: config.acceptLanes,
    connections: config.databaseConnections,
    onError: (error) => log.warn({ err: error }, "a connection to the database broke"),
    onMoved: (host) => log.warn({ host }, "another server leads the database now"),
  });
}

/** Whatever this machine's clock shows, the database's decides. */
export function openClock(database: Database, log: Logger): Promise<Clock> {
  return startClock({
    db: database.own,
    wallClock: Date.now,
    monotonic: () => performance.now(),
    onAstray: (aheadMs, isAstray) =>
      isAstray
        ? log.warn({ aheadMs }, "this machine's clock is not the database's, which decides")
        : log.info({ aheadMs }, "this machine's clock is the database's again"),
  });
}

type AcceptParts = {
  metrics?: Metrics;
  wake: () => void;
  plan: (dueMs: number) => void;
  /** Whether the database took what was to be stored. */
  onStored?: (isStored: boolean) => void;
};

export function openAccept(
  config: Pick<Config, "acceptLanes" | "acceptMaxWaiting">,
  database: Database,
  clock: Clock,
  { metrics, wake, plan, onStored }: AcceptParts,
): Accept {
  return createAccept({
    db: database.accept,
    newId: createIds(clock.nowMs),
    now: clock.now,
    lanes: config.acceptLanes,
    maxWaitingRows: config.acceptMaxWaiting,
    maxWaitingBytes: MAX_WAITING_BYTES,
    onCommit: ({ rows, seconds, nextDueMs }) => {
      wake();
      onStored?.(true);
      if (nextDueMs !== undefined) plan(nextDueMs);
      metrics?.acceptRows.observe(rows);
      metrics?.acceptDuration.observe(seconds);
    },
    onOutage: () => onStored?.(false),
  });
}

/** Several addresses of one host fail with an empty message and a list. */
function awayError(cause: unknown): UnusableDatabaseError {
  const [error] = cause instanceof AggregateError ? cause.errors : [cause];
  return new UnusableDatabaseError(`the database does not answer: ${error instanceof Error ? error.message : error}`, {
    cause,
  });
}

/** Looks once, and changes nothing. */
export async function checkDatabase(url: string): Promise<void> {
  try {
    await inspectServer(url);
    await refuseSharedSessions(url);
  } catch (error) {
    throw refusalOf(error) ?? (isOutage(error) ? awayError(error) : error);
  }
}

/** A database that starts at the same time as we do deserves a moment; one that refuses us will go on doing so. */
async function whenReachable<Value>(ask: () => Promise<Value>, log: Logger, stopping?: AbortSignal): Promise<Value> {
  const deadline = performance.now() + WAIT_FOR_DATABASE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal || !isOutage(error)) throw refusal ?? error;
      if (performance.now() > deadline) throw awayError(error);
      log.warn({ err: error }, "waiting for the database");
      await sleep(1_000, undefined, stopping ? { signal: stopping } : {});
    }
  }
}
