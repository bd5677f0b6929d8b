// One leased attempt, start to finish. Read this file first.
//
// A provider answers with a Reply whatever happened on the wire. Only bugs and a lost database throw; the
// lease then runs out and the sweep takes over. A message may go out twice, but it never disappears
// quietly.

import type { Message, Provider, SendOptions } from "#channels/channel.ts";
import { type Attempt, latenessOf, type Outcome, type Postponed, type Settlement } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { policyOf, type RetryPolicy, settlementFor } from "#domain/retry.ts";
import { cut } from "#domain/text.ts";
import type { Guard } from "#guards/guard.ts";
import type { Locked } from "#guards/lock/locked.ts";
import { lockedGuard } from "#guards/lock/locked-guard.ts";
import type { Settled } from "#queue/queue.ts";
import type { Fact } from "#telemetry/facts.ts";
import type { Singleflight } from "#timing/singleflight.ts";
import { type Carried, carry } from "./carry.ts";
import { type DeviceResult, type PushWorld, pushAll } from "./push.ts";

export type World = {
  /** The providers that carry a channel for a tenant, in order of preference. */
  route: (channel: string, tenant: number) => readonly Provider[];
  /** The request with its template filled in, or why that cannot be done. */
  render: (tenant: number, request: NotificationRequest) => Promise<NotificationRequest | Unrendered>;
  push: PushWorld;
  /** Only where deliveries are locked. */
  locked?: Locked;
  guard: Guard;
  /** Sends under way, by notification. */
  flights: Singleflight<Ended>;
  /** Writes into the record that it waits for one of our guards, the first time. Undefined where that is known. */
  notePostponed: (attempt: Attempt, postponed: Postponed) => Promise<void> | undefined;
  /** Resolves to false when the lease was lost: nothing was written. */
  settle: (settled: Settled) => Promise<boolean>;
  monotonic: () => number;
  random: () => number;
  retry: RetryPolicy;
  /** A send starts only while the lease has this much left. */
  leaseMarginMs: number;
  tell: (fact: Fact) => void;
};

/** `isPassing`: the template may be fine, there was no time or room for it now. */
export type Unrendered = { error: string; isPassing: boolean };

/** What the worker lends to one attempt. */
export type Slot = SendOptions & {
  /** On the worker's monotonic clock. */
  startedAt: number;
  /** The provider has answered: another attempt may begin while this one waits for its commit. */
  free: () => void;
};

/** What an attempt came to, and what the record will say besides. */
export type Ended = {
  outcome: Outcome;
  provider?: Provider | undefined;
  passedOver?: Carried["passedOver"];
  devices?: DeviceResult[];
};

export async function deliver(attempt: Attempt, slot: Slot, world: World): Promise<void> {
  const { startedAt } = slot;
  const answer = refusal(attempt, startedAt, world) ?? send(attempt, slot, world);
  const ended = answer instanceof Promise ? await answer : answer;
  const latencyMs = world.monotonic() - startedAt;
  slot.free();
  const { outcome, provider } = ended;
  if (outcome.kind === "postponed") await world.notePostponed(attempt, outcome);
  const settlement = settlementFor(attempt, outcome, policyOf(attempt, world.retry), world.random());
  const isHeld = await world.settle(settledBy(attempt, ended, settlement, latencyMs));
  world.tell({ attempt, outcome, settlement, provider: provider?.name, latencyMs, isLost: !isHeld });
}

/** Nothing is begun too late, nor sent to whom it must not be. The guard looks at the time again before each provider. */
function refusal(attempt: Attempt, now: number, world: World): Ended | undefined {
  const late = latenessOf(attempt, now, world.leaseMarginMs);
  if (late) return { outcome: late };
  const { suppression } = attempt;
  return suppression === undefined ? undefined : { outcome: { kind: "suppressed", reason: suppression } };
}

/** If an earlier send of the same notification still hangs here, its result is ours too. */
function send(attempt: Attempt, slot: Slot, world: World): Ended | Promise<Ended> {
  const { id, request } = attempt;
  const flying = world.flights.find(id);
  if (flying) return flying;
  const ended =
    request.content.templateId !== undefined ? rendered(attempt, slot, world) : hand(attempt, request, slot, world);
  return ended instanceof Promise ? world.flights.keep(id, ended) : ended;
}

/** A broken template fails its notification, never the worker. */
async function rendered(attempt: Attempt, slot: Slot, world: World): Promise<Ended> {
  const filled = await world.render(attempt.tenant, attempt.request);
  if ("error" in filled) {
    const kind = filled.isPassing ? "unavailable" : "rejected";
    return { outcome: { kind, reason: filled.error, code: "TEMPLATE", category: "content" } };
  }
  return hand(attempt, filled, slot, world);
}

function hand(attempt: Attempt, request: NotificationRequest, slot: Slot, world: World): Ended | Promise<Ended> {
  const { id, tenant, number } = attempt;
  const message: Message = { notificationId: id, tenant, attempt: number, request };
  if (world.locked?.covers(request.channel)) return underLock(world.locked, attempt, message, slot, world);
  return ask(attempt, message, slot, world, world.guard);
}

function ask(attempt: Attempt, message: Message, slot: Slot, world: World, guard: Guard): Ended | Promise<Ended> {
  const { channel } = message.request;
  const providers = world.route(channel, attempt.tenant);
  return channel === "push"
    ? pushAll(message, attempt.devices ?? [], providers, slot, world.push, guard, attempt)
    : carry(message, providers, slot, guard, attempt);
}

/** The lock is one more guard, the last: who has to wait for the others does not take it. */
async function underLock(locked: Locked, attempt: Attempt, message: Message, slot: Slot, world: World): Promise<Ended> {
  const door = locked.door(message.request.channel, attempt.id);
  try {
    return await ask(attempt, message, slot, world, lockedGuard(door, world));
  } finally {
    door.leave();
  }
}

/** The line of the record. A claim that is handed back or postponed never was an attempt and leaves none. */
export function settledBy(
  attempt: Attempt,
  { outcome, provider, passedOver = [], devices }: Ended,
  settlement: Settlement,
  latencyMs: number,
): Settled {
  const settled: Settled = { attempt, settlement };
  if (outcome.kind === "released" || outcome.kind === "postponed") return settled;
  const account: NonNullable<Settled["account"]> = {
    outcome: outcome.kind,
    latencyMs: Math.round(latencyMs * 100) / 100,
  };
  settled.account = account;
  if (provider) account.provider = provider.name;
  if ("reason" in outcome) account.error = cut(outcome.reason, 1000);
  const note = (name: string, value: unknown) => {
    account.detail ??= {};
    account.detail[name] = value;
  };
  if ("code" in outcome && outcome.code !== undefined) note("code", outcome.code);
  if ("category" in outcome && outcome.category !== undefined) note("category", outcome.category);
  if (passedOver.length > 0) note("passedOver", passedOver);
  if (devices) note("devices", devices);
  if (outcome.kind === "accepted") {
    if (outcome.cost !== undefined) account.cost = outcome.cost;
    if (outcome.receipt !== undefined) {
      note("receipt", outcome.receipt);
      if (provider?.capabilities.tracking) {
        account.receipt = outcome.receipt;
        if (provider.owner !== undefined) account.owner = provider.owner;
      }
    }
  }
  return settled;
}
