// The database, reached: one that is elsewhere or the one that comes along, brought up to date, its pools and its clock.

import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "#config/read.ts";
import { startEmbedded } from "#embedded/embedded.ts";
import { type Clock, startClock } from "#store/connection/clock.ts";
import { type Database, isOutage, mostConnections, openDatabase } from "#store/connection/database.ts";
import { inspectServer, migrate } from "#store/connection/migrate.ts";
import { refuseSharedSessions } from "#store/connection/pooler.ts";
import { refusalOf, UnusableDatabaseError } from "#store/connection/refusals.ts";
import type { Facts } from "#telemetry/facts.ts";

const WAIT_FOR_DATABASE_MS = 30_000;
const LOOK_AGAIN_MS = 1_000;

export type Reached = {
  /** PostgreSQL itself, or a pooler of sessions. */
  url: string;
  /** For the pools: what is not the same leads through a pooler that shares sessions. */
  poolUrl: string;
  isEmbedded: boolean;
  /** Of an embedded one: given to another process, it keeps the database running until that has ended too. */
  leash(): Socket | undefined;
  stop(): Promise<void>;
};

export async function reachDatabase(config: ReachConfig, facts: Facts): Promise<Reached> {
  const { databaseUrl, databaseDirectUrl, home } = config;
  if (databaseUrl !== undefined) {
    const url = databaseDirectUrl ?? databaseUrl;
    return { url, poolUrl: databaseUrl, isEmbedded: false, leash: () => undefined, stop: async () => {} };
  }
  const { url, leash, stop } = await startEmbedded({
    home,
    settings: { max_connections: String(roomFor(config)) },
    onNote: (message, details) => facts.embeddedSaid(message, details),
  });
  return { url, poolUrl: url, isEmbedded: true, leash, stop };
}

type ReachConfig = Pick<
  Config,
  "databaseUrl" | "databaseDirectUrl" | "home" | "processes" | "acceptCommits" | "databaseConnections"
>;

/** For all processes, and for those who look in besides: migrations, psql, `carillon admin-key`, a library. */
const roomFor = ({ processes, acceptCommits, databaseConnections }: ReachConfig): number =>
  Math.max(100, processes * mostConnections(acceptCommits, databaseConnections) + 40);

/** Answers with the migrations that were applied. */
export const prepareDatabase = (
  { url, isEmbedded }: Pick<Reached, "url" | "isEmbedded">,
  facts: Facts,
  stopping?: AbortSignal,
): Promise<string[]> =>
  whenReachable(
    async () => {
      if (!isEmbedded) await refuseSharedSessions(url);
      return migrate(url);
    },
    facts,
    stopping,
  );

export function openStore(
  config: Pick<Config, "acceptCommits" | "databaseConnections">,
  { url, poolUrl = url }: Pick<Reached, "url"> & Partial<Reached>,
  facts: Facts,
): Database {
  return openDatabase({
    url: poolUrl,
    isShared: poolUrl !== url,
    acceptConnections: config.acceptCommits,
    connections: config.databaseConnections,
    onError: (error) => facts.connectionBroke(error),
    onMoved: (host) => facts.leaderMoved(host),
  });
}

/** Whatever this machine's clock shows, the database's decides. */
export const openClock = (database: Database, facts: Facts, stopping?: AbortSignal): Promise<Clock> =>
  whenReachable(
    () =>
      startClock({
        db: database.own,
        wallClock: Date.now,
        monotonic: () => performance.now(),
        onAstray: (aheadMs, isAstray) => facts.clockStrayed(aheadMs, isAstray),
      }),
    facts,
    stopping,
  );

/** Looks once, and changes nothing. */
export async function checkDatabase(url: string): Promise<void> {
  try {
    await inspectServer(url);
    await refuseSharedSessions(url);
  } catch (error) {
    throw refusalOf(error) ?? (isOutage(error) ? awayError(error) : error);
  }
}

/** Several addresses of one host fail with an empty message and a list. */
function awayError(cause: unknown): UnusableDatabaseError {
  const [error] = cause instanceof AggregateError ? cause.errors : [cause];
  return new UnusableDatabaseError(`the database does not answer: ${error instanceof Error ? error.message : error}`, {
    cause,
  });
}

/** A database that starts at the same time as we do deserves a moment; one that refuses us will go on doing so. */
async function whenReachable<Value>(ask: () => Promise<Value>, facts: Facts, stopping?: AbortSignal): Promise<Value> {
  const deadline = performance.now() + WAIT_FOR_DATABASE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal || !isOutage(error)) throw refusal ?? error;
      if (performance.now() > deadline) throw awayError(error);
      facts.awaited(error);
      await sleep(LOOK_AGAIN_MS, undefined, stopping ? { signal: stopping } : {});
    }
  }
}
