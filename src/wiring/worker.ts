// The worker, wired: its guards and locks, the commits that settlements share, and the world of an attempt.

import { leaseMarginMs } from "#domain/attempt.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import { Postponements } from "#steps/walk/postpone.ts";
import type { Result } from "#steps/walk/send.ts";
import { createSettlements } from "#steps/walk/settle.ts";
import { Suppressions } from "#steps/walk/suppress.ts";
import type { World } from "#steps/walk/world.ts";
import { createSingleflight } from "#timing/singleflight.ts";
import type { Base } from "./base.ts";
import type { Channels } from "./channels.ts";
import { openGuards } from "./guards.ts";
import { openLocks } from "./locks.ts";
import type { Member } from "./member.ts";
import type { Stop } from "./undo.ts";

const SETTLE_ABREAST = 2;

export async function openWorker(base: Base, channels: Channels, member: Member, undo: Stop[]): Promise<RunningWorker> {
  const { leaseMs, batchSize, concurrency, pollMs, sendTimeoutMs } = base.config;
  const world = await openWorld(base, channels, member, undo);
  return startWorker({
    id: member.id,
    queue: base.queue,
    world,
    sendTimeoutMs,
    batchSize,
    concurrency,
    leaseMs,
    pollMs,
  });
}

export async function openWorld(base: Base, channels: Channels, member: Member, undo: Stop[]): Promise<World> {
  const { database, queue, hints, retry, monotonic, facts } = base;
  const { leaseMs } = base.config;
  const { providers, templates } = channels;
  const guard = openGuards(base, channels, member, undo);
  const locked = await openLocks(base, member, undo);
  return {
    db: database.own,
    suppressions: new Suppressions(database.own, monotonic),
    providers,
    templates,
    guard,
    ...(locked && { locked }),
    flights: createSingleflight<Result>(),
    postponements: new Postponements(queue, member.id, facts),
    settlements: createSettlements({
      queue,
      abreast: SETTLE_ABREAST,
      patienceMs: 2 * leaseMs,
      monotonic,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      facts,
    }),
    retry,
    leaseMarginMs: leaseMarginMs(leaseMs),
    hints,
    facts,
    monotonic,
    random: Math.random,
  };
}
