// The worker, wired: its guards and locks, the way it settles, and the world of an attempt.

import type { Attempt } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import type { Ended, Unrendered } from "#steps/walk/deliver.ts";
import { findDevices } from "#steps/walk/find-devices.ts";
import { createPostponements } from "#steps/walk/postpone.ts";
import { createSettle, UNSAID } from "#steps/walk/settle.ts";
import { createSuppress } from "#steps/walk/suppress.ts";
import { deactivateDevice, settledDevices } from "#store/devices.ts";
import type { Fact, Facts } from "#telemetry/facts.ts";
import type { Templates } from "#templates/load.ts";
import { told } from "#templates/template.ts";
import { createSingleflight } from "#timing/singleflight.ts";
import type { Base } from "./base.ts";
import type { Channels } from "./channels.ts";
import { openGuards } from "./guards.ts";
import { openLocks } from "./locks.ts";
import type { Member } from "./member.ts";
import type { Stop } from "./undo.ts";

const SETTLE_ABREAST = 2;
/** More than a settlement takes from being decided to being told: a hint may be early, never late. */
const SETTLE_MS = 100;

export async function openWorker(base: Base, channels: Channels, member: Member, undo: Stop[]): Promise<RunningWorker> {
  const { config, database, queue, hints, retry, monotonic, facts, log } = base;
  const { leaseMs, batchSize, concurrency, pollMs, sendTimeoutMs } = config;
  const { providers, templates } = channels;
  const db = database.own;
  const guard = openGuards(base, channels, member, undo);
  const locked = await openLocks(base, member, undo);
  const settle = createSettle({
    queue,
    abreast: SETTLE_ABREAST,
    patienceMs: 2 * leaseMs,
    monotonic,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    onRefused: (settled, error) => facts.refused(settled, error),
  });
  const world = {
    route: providers.route,
    render: (tenant: number, request: NotificationRequest) => render(templates, tenant, request, facts),
    push: {
      settledDevices: (notificationId: string) =>
        settledDevices(db, notificationId).catch((error: unknown) => void facts.unread(error)),
      deactivate: (tenant: number, token: string, reason: string) =>
        deactivateDevice(db, tenant, token, reason)
          .catch(() => deactivateDevice(db, tenant, token, UNSAID))
          .catch((error: unknown) => facts.deviceUnmarked(error)),
    },
    ...(locked && { locked }),
    guard,
    notePostponed: createPostponements(queue, member.id, facts).note,
    flights: createSingleflight<Ended>(),
    monotonic,
    random: Math.random,
    retry,
    tell: (fact: Fact) => {
      facts.ended(fact, monotonic());
      if (fact.settlement.to === "pending" && !fact.isLost) hints.due(retryDueMs(fact, monotonic()));
    },
  };
  const suppress = createSuppress(db, monotonic);
  const prepare = (attempts: readonly Attempt[]): Promise<unknown> | undefined => {
    const [one, other] = [suppress(attempts), findDevices(db, attempts)];
    return one && other ? Promise.all([one, other]) : (one ?? other);
  };
  return startWorker({
    id: member.id,
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
  facts: Facts,
): Promise<NotificationRequest | Unrendered> {
  const rendered = await templates.render(tenant, request).catch((error: unknown) => void facts.unread(error));
  if (!rendered) return { error: "the template cannot be read", isPassing: true };
  if (!("error" in rendered)) return rendered.request;
  return { error: told(rendered.error), isPassing: rendered.error.why !== undefined };
}

/** When a retry will be due at the earliest, on the database's clock. */
function retryDueMs({ attempt: { lease }, settlement }: Fact, now: number): number {
  const waitMs = settlement.to === "pending" ? settlement.waitMs : 0;
  return lease.claimedAtMs + (now - lease.claimedAt) + waitMs - SETTLE_MS;
}
