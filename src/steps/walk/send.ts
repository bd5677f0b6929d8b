// From a prepared attempt to what a provider said: its template filled in, its lock taken, its route tried.

import type { Message, Provider } from "#channels/channel.ts";
import type { Outcome } from "#domain/attempt.ts";
import type { Exchange } from "#domain/exchange.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Guard } from "#guards/guard.ts";
import type { Locked } from "#guards/lock/locked.ts";
import { lockedGuard } from "#guards/lock/locked-guard.ts";
import { told } from "#templates/template.ts";
import { type Carried, carry } from "./carry.ts";
import type { Prepared } from "./prepare.ts";
import { type DeviceResult, pushAll } from "./push.ts";
import type { Slot, World } from "./world.ts";

/** What an attempt came to, and what the record will say besides. */
export type Result = {
  outcome: Outcome;
  provider?: Provider | undefined;
  passedOver?: Carried["passedOver"];
  devices?: DeviceResult[];
  /** What that provider was asked to send. */
  message?: Message | undefined;
  /** What went over the wire. */
  exchange?: Exchange | undefined;
};

export type SendWorld = Pick<
  World,
  "db" | "providers" | "templates" | "guard" | "locked" | "flights" | "leaseMarginMs" | "facts" | "traces" | "monotonic"
>;

/** If an earlier send of the same notification still hangs here, its result is ours too. */
export function send(prepared: Prepared, slot: Slot, world: SendWorld): Result | Promise<Result> {
  const { id, request } = prepared;
  const flying = world.flights.find(id);
  if (flying) return flying;
  const result =
    request.content.templateId !== undefined ? render(prepared, slot, world) : hand(prepared, request, slot, world);
  return result instanceof Promise ? world.flights.keep(id, result) : result;
}

/** A broken template fails its notification, never the worker. */
async function render(prepared: Prepared, slot: Slot, world: SendWorld): Promise<Result> {
  const { tenant, request, rank } = prepared;
  const rendering = world.templates.render(tenant, request, rank);
  const rendered = await (world.traces?.rendering(prepared, rendering) ?? rendering).catch((error: unknown) =>
    world.facts.unread(error),
  );
  if (!rendered) return unrendered("unavailable", "the template cannot be read");
  if ("request" in rendered) return hand(prepared, rendered.request, slot, world);
  // The template may be fine: there was no time or room for it now.
  const isPassing = rendered.error.why !== undefined;
  return unrendered(isPassing ? "unavailable" : "rejected", told(rendered.error));
}

const unrendered = (kind: "unavailable" | "rejected", reason: string): Result => ({
  outcome: { kind, reason, code: "TEMPLATE", category: "content" },
});

function hand(
  prepared: Prepared,
  request: NotificationRequest,
  slot: Slot,
  world: SendWorld,
): Result | Promise<Result> {
  const { id, tenant, number } = prepared;
  const message: Message = { notificationId: id, tenant, attempt: number, request };
  if (prepared.endpoint) message.endpoint = prepared.endpoint;
  if (world.locked?.covers(request.channel)) return underLock(world.locked, prepared, message, slot, world);
  return ask(prepared, message, slot, world, world.guard);
}

function ask(
  prepared: Prepared,
  message: Message,
  slot: Slot,
  world: SendWorld,
  guard: Guard,
): Result | Promise<Result> {
  const { channel } = message.request;
  const providers = world.providers.route(channel, prepared.tenant);
  const guarding = world.traces?.guarding(prepared, guard) ?? guard;
  return channel === "push"
    ? pushAll(message, prepared.devices ?? [], providers, slot, world, guarding, prepared)
    : carry(message, providers, slot, guarding, prepared);
}

/** The lock is one more guard, the last: who has to wait for the others does not take it. */
async function underLock(
  locked: Locked,
  prepared: Prepared,
  message: Message,
  slot: Slot,
  world: SendWorld,
): Promise<Result> {
  const door = locked.door(message.request.channel, prepared.id);
  try {
    return await ask(prepared, message, slot, world, lockedGuard(door, world));
  } finally {
    door.leave();
  }
}
