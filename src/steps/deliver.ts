// One leased attempt, start to finish. Read this file first.
//
// A provider answers with a Reply whatever happened on the wire. Only bugs and a lost database throw; the
// lease then runs out and the sweep takes over. A message may go out twice, but it never disappears
// quietly.

import type { Message, Provider, SendOptions } from "../channels/channel.ts";
import type { Attempt, Outcome, Reply, Settlement } from "../domain/attempt.ts";
import { policyOf, type RetryPolicy, settlementFor } from "../domain/retry.ts";
import type { Settled } from "../queue/queue.ts";

export type World = {
  /** The provider that carries a channel. */
  route: (channel: string) => Provider | undefined;
  /** Resolves to false when the lease was lost: nothing was written. */
  settle: (settled: Settled) => Promise<boolean>;
  monotonic: () => number;
  random: () => number;
  retry: RetryPolicy;
  /** A send starts only while the lease has this much left. */
  leaseMarginMs: number;
  tell: (fact: Fact) => void;
};

/** What happened to an attempt, for logs and metrics. */
export type Fact = {
  attempt: Attempt;
  outcome: Outcome;
  settlement: Settlement;
  provider: string | undefined;
  latencyMs: number;
  /** The queue no longer knew us as the holder. */
  isLost: boolean;
};

/** What the worker lends to one attempt. */
export type Slot = SendOptions & {
  /** The provider has answered: another attempt may begin while this one waits for its commit. */
  free: () => void;
};

export async function deliver(attempt: Attempt, slot: Slot, world: World): Promise<void> {
  const provider = world.route(attempt.request.channel);
  const startedAt = world.monotonic();
  const answer = refusal(attempt, startedAt, world) ?? send(attempt, provider, slot);
  const outcome = answer instanceof Promise ? await answer : answer;
  const latencyMs = world.monotonic() - startedAt;
  slot.free();
  const settlement = settlementFor(attempt, outcome, policyOf(attempt, world.retry), world.random());
  const isHeld = await world.settle(settledBy(attempt, outcome, settlement, provider?.name, latencyMs));
  world.tell({ attempt, outcome, settlement, provider: provider?.name, latencyMs, isLost: !isHeld });
}

/** Nothing is sent after its time, nor on a lease that might end while it is being sent. */
function refusal({ lease, expiresAtMs }: Attempt, now: number, world: World): Outcome | undefined {
  const databaseNowMs = lease.claimedAtMs + (now - lease.claimedAt);
  if (expiresAtMs !== undefined && databaseNowMs >= expiresAtMs) return { kind: "expired" };
  if (now >= lease.endsAt - world.leaseMarginMs) return { kind: "released" };
  return undefined;
}

/** A provider that answers at once costs no turn of the event loop. */
function send(
  { id, tenant, number, request }: Attempt,
  provider: Provider | undefined,
  slot: Slot,
): Reply | Promise<Reply> {
  if (!provider) return { kind: "rejected", reason: `no provider carries ${request.channel}` };
  const message: Message = { notificationId: id, tenant, attempt: number, request };
  try {
    const reply = provider.send(message, slot);
    return reply instanceof Promise ? answered(reply, message, slot, provider) : reply;
  } catch (error) {
    return failure(error);
  }
}

async function answered(asked: Promise<Reply>, message: Message, slot: Slot, provider: Provider): Promise<Reply> {
  try {
    const reply = await asked;
    if (reply.kind !== "ambiguous" || message.request.onAmbiguous !== "reconcile") return reply;
    return await reconcile(reply, message, slot, provider);
  } catch (error) {
    return failure(error);
  }
}

/** A provider must not throw. If it does, nobody knows whether the message left. */
const failure = (error: unknown): Reply => ({
  kind: "ambiguous",
  reason: `the provider failed: ${error instanceof Error ? error.message : error}`,
});

/** Asks the provider what became of it. If it cannot tell, the notification is held for a person to decide. */
async function reconcile(reply: Reply, message: Message, options: SendOptions, provider: Provider): Promise<Reply> {
  switch (await provider.reconcile?.(message, options)) {
    case "accepted":
      return { kind: "accepted" };
    case "unknown-message":
      return { kind: "unavailable", reason: "the answer was lost; the provider does not know the message" };
    default:
      return reply;
  }
}

/** The line of the record. A claim that is handed back never was an attempt and leaves none. */
export function settledBy(
  { seq, lease }: Attempt,
  outcome: Outcome,
  settlement: Settlement,
  provider: string | undefined,
  latencyMs: number,
): Settled {
  const settled: Settled = { seq, token: lease.token, settlement };
  if (outcome.kind === "released") return settled;
  settled.account = { outcome: outcome.kind, latencyMs: Math.round(latencyMs * 100) / 100 };
  if (provider !== undefined && outcome.kind !== "expired") settled.account.provider = provider;
  if ("reason" in outcome) settled.account.error = outcome.reason.slice(0, 1000);
  if (outcome.kind === "accepted") {
    if (outcome.cost !== undefined) settled.account.cost = outcome.cost;
    if (outcome.receipt !== undefined) settled.account.detail = { receipt: outcome.receipt };
  }
  return settled;
}
