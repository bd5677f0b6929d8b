// Locks around deliveries, as the configuration asks for them. Off, there is nothing here at all.

import { hostname } from "node:os";
import { createKubernetesLock } from "#guards/lock/kubernetes.ts";
import type { Lock } from "#guards/lock/lock.ts";
import { createLocked, type Locked } from "#guards/lock/locked.ts";
import { createPostgresLock } from "#guards/lock/postgres.ts";
import { createLockMetrics } from "#telemetry/lock-metrics.ts";
import type { Base } from "./base.ts";
import type { Member } from "./member.ts";
import type { Stop } from "./undo.ts";

export async function openLocks(base: Base, member: Member, undo: Stop[]): Promise<Locked | undefined> {
  const { config, metrics, monotonic, facts } = base;
  const { locks } = config;
  const lock = openLock(base, member);
  if (!lock || locks.kind === "off") return undefined;
  // The client of Kubernetes takes a moment to load: better now than with the first delivery.
  const first = await lock.holder("start").catch((error: unknown) => facts.locksAway(error));
  facts.locking(locks.kind, locks.channels, first);
  const figures = createLockMetrics(metrics.registry);
  const locked = createLocked({
    lock,
    channels: locks.channels,
    monotonic,
    onFailure: figures.failed,
    onAsked: figures.asked,
    onTrouble: (trouble) => facts.lockTrouble(trouble),
  });
  undo.push(locked.close);
  return locked;
}

function openLock({ config: { locks }, database, monotonic, siblings }: Base, { name }: Member): Lock | undefined {
  switch (locks.kind) {
    case "postgres":
      return createPostgresLock({ db: database.own, identity: name, monotonic });
    case "kubernetes":
      return createKubernetesLock({
        namespace: locks.namespace,
        // Those of one pod have its name in common.
        identity: [locks.identity ?? hostname(), ...(siblings ? [siblings.number] : [])].join("-"),
        monotonic,
        wallClock: Date.now,
      });
    case "off":
      return undefined;
  }
}
