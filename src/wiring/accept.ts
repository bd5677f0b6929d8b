// The first step, wired: what is stored is counted, and wakes whoever can go on with it.

import type { Config } from "#config/read.ts";
import { createIds } from "#domain/ids.ts";
import type { Lanes } from "#domain/priority.ts";
import { Acceptances, type Commit } from "#steps/walk/accept.ts";
import type { Clock } from "#store/connection/clock.ts";
import type { Database } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import type { Traces } from "#telemetry/traces/traces.ts";
import type { Engines } from "./engines.ts";

/** Whom acceptance wakes. */
export type Wakes = {
  /** Something may be claimed. */
  wake: (lanes?: Lanes) => void;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export type OpenedAcceptances = {
  acceptances: Acceptances;
  /** Something was stored, here or by a source: it is counted, and whoever can go on with it is woken. */
  committed(commit: Commit): void;
  /** What was sent lately could not be stored, whatever else the database may do. */
  areSendsRefused(): boolean;
};

/** For so long a refused send says more than a small write that succeeds. */
const REFUSED_MS = 5_000;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export function openAcceptances(
  { config, database, clock, facts, traces, engines }: AcceptBase,
  { wake, plan }: Wakes,
): OpenedAcceptances {
  let refusedAt = Number.NEGATIVE_INFINITY;
  const committed = ({ rows, seconds, nextDueMs, lanes, handed }: Commit) => {
    // Whoever looks before it is offered finds nothing.
    if (handed.length > 0) void engines?.offer(handed).finally(() => wake(lanes));
    else wake(lanes);
    refusedAt = Number.NEGATIVE_INFINITY;
    if (nextDueMs !== undefined) plan(nextDueMs);
    facts.committed(rows, seconds);
  };
  const acceptances = new Acceptances({
    db: database.accept,
    newId: createIds(clock.nowMs),
    now: clock.now,
    abreast: config.acceptCommits,
    maxWaitingRows: config.acceptMaxWaiting,
    maxWaitingBytes: MAX_WAITING_BYTES,
    ...(engines && { engines: engines.names }),
    traces,
    onCommit: committed,
    onOutage: () => {
      refusedAt = performance.now();
    },
  });
  return { acceptances, committed, areSendsRefused: () => performance.now() - refusedAt < REFUSED_MS };
}

type AcceptBase = {
  config: AcceptConfig;
  database: Database;
  clock: Clock;
  facts: Facts;
  traces: Traces | undefined;
  /** Undefined where everything waits in PostgreSQL. */
  engines: Engines | undefined;
};
type AcceptConfig = Pick<Config, "acceptCommits" | "acceptMaxWaiting">;
