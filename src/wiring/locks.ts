// Locks around deliveries, as the configuration asks for them. Off, there is nothing here at all.

import { hostname } from "node:os";
import type { Config } from "#config/read.ts";
import { createKubernetesLock } from "#guards/lock/kubernetes.ts";
import type { Lock } from "#guards/lock/lock.ts";
import { createLocked, type Locked } from "#guards/lock/locked.ts";
import { createPostgresLock } from "#guards/lock/postgres.ts";
import type { Database } from "#store/connection/database.ts";
import { createLockMetrics } from "#telemetry/lock-metrics.ts";
import type { Logger } from "#telemetry/log.ts";
import type { Metrics } from "#telemetry/metrics.ts";

export type LocksOptions = {
  config: Config;
  database: Database;
  metrics: Metrics;
  /** The worker's name. */
  name: string;
  monotonic: () => number;
  log: Logger;
};

export async function openLocks(options: LocksOptions): Promise<Locked | undefined> {
  const { config, metrics, monotonic, log } = options;
  const { locks } = config;
  if (locks.kind === "off") return undefined;
  const lock = openLock(options);
  // The client of Kubernetes takes a moment to load: better now than with the first delivery.
  const first = await lock
    ?.holder("start")
    .catch((error: unknown) => log.warn({ err: error }, "locks cannot be had yet"));
  log.info({ locks: locks.kind, channels: locks.channels, first }, "deliveries are locked");
  const figures = createLockMetrics(metrics.registry);
  return (
    lock &&
    createLocked({
      lock,
      channels: locks.channels,
      monotonic,
      onFailure: figures.failed,
      onAsked: figures.asked,
      onTrouble: (trouble) => log.warn(trouble, "deliveries go on without their locks"),
    })
  );
}

function openLock({ config: { locks }, database, name, monotonic }: LocksOptions): Lock | undefined {
  switch (locks.kind) {
    case "postgres":
      return createPostgresLock({ db: database.own, identity: name, monotonic });
    case "kubernetes":
      return createKubernetesLock({
        namespace: locks.namespace,
        identity: locks.identity ?? hostname(),
        monotonic,
        wallClock: Date.now,
      });
    case "off":
      return undefined;
  }
}
