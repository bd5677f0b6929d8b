// The worker, wired: its guards and locks, the commits that settlements share, and the world of an attempt.

import { leaseMarginMs } from "#domain/attempt.ts";
import { priorityOf, RANKS } from "#domain/priority.ts";
import { pausedGuard } from "#guards/pauses.ts";
import { claimOnly } from "#queue/claim-only.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import { Postponements } from "#steps/walk/postpone.ts";
import type { Result } from "#steps/walk/send.ts";
import { createSettlements, type Settlements } from "#steps/walk/settle.ts";
import { Suppressions } from "#steps/walk/suppress.ts";
import type { World } from "#steps/walk/world.ts";
import { readWeights } from "#store/tenants.ts";
import { createSingleflight } from "#timing/singleflight.ts";
import type { Base } from "./base.ts";
import type { Channels } from "./channels.ts";
import { openGuards } from "./guards.ts";
import { openLocks } from "./locks.ts";
import type { Member } from "./member.ts";
import { openPauses } from "./pauses.ts";
import type { Stop } from "./undo.ts";

const SETTLE_ABREAST = 2;
/** Another weight of a tenant is known here after this long. */
const WEIGH_MS = 5_000;

export async function openWorker(base: Base, world: World, member: Member, undo: Stop[]): Promise<RunningWorker> {
  const { concurrency, wayPercent, pollMs, takes } = base.config;
  const worker = startWorker({
    id: member.id,
    queue: { ...base.queue, claim: claimOnly(base.queue, takes) },
    world,
    ranks: RANKS,
    concurrency,
    wayPart: wayPercent / 100,
    pollMs: (rank) => pollMs[priorityOf(rank)],
    ...sendingOf(base),
  });
  await keepWeights(base, worker, undo);
  return worker;
}

/** What holds for notifications and callbacks alike. */
export const sendingOf = ({ config: { sendTimeoutMs, batchSize, leaseMs } }: Base) => ({
  sendTimeoutMs,
  batchSize,
  leaseMs,
});

/** As the queue goes by them in what it hands out, the worker does in what it begins. */
async function keepWeights({ database, facts }: Base, worker: RunningWorker, undo: Stop[]): Promise<void> {
  const weigh = () => readWeights(database.own).then(worker.weigh, (error: unknown) => facts.weightsUnread(error));
  await weigh();
  const weighing = setInterval(weigh, WEIGH_MS);
  undo.push(async () => clearInterval(weighing));
}

export const openSettlements = ({ config, queue, monotonic, facts, traces }: Base, abreast: number): Settlements =>
  createSettlements({
    queue,
    abreast,
    patienceMs: 2 * config.leaseMs,
    monotonic,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    facts,
    traces,
  });

export async function openWorld(base: Base, channels: Channels, member: Member, undo: Stop[]): Promise<World> {
  const { database, queue, hints, retry, monotonic, facts, traces } = base;
  const { leaseMs } = base.config;
  const { providers, templates } = channels;
  const pauses = await openPauses(base, undo);
  const guard = pausedGuard(openGuards(base, channels, member, undo), pauses, providers.accountOf);
  const locked = await openLocks(base, member, undo);
  return {
    db: database.own,
    suppressions: new Suppressions(database.own, monotonic),
    providers,
    templates,
    guard,
    pauses,
    ...(locked && { locked }),
    flights: createSingleflight<Result>(),
    postponements: new Postponements(database.own, queue, member.id, facts),
    settlements: openSettlements(base, SETTLE_ABREAST),
    retry,
    exchanges: base.config.exchanges,
    leaseMarginMs: leaseMarginMs(leaseMs),
    hints,
    facts,
    traces,
    monotonic,
    random: Math.random,
  };
}
