// The guard of a worker: a gate per account with a provider, with its breaker and its limits.
//
// Where a message goes to a URL that a tenant gave, the gate is that receiver's, for that tenant alone: a stranger's server that
// is down, or asks for an hour's pause, has nothing to say about anybody else's.
//
// What an outage teaches one worker it tells the others, as a hint. State: the gates, by provider and by receiver.

import type { Message, Provider } from "#channels/channel.ts";
import { latenessOf } from "#domain/attempt.ts";
import { cut } from "#domain/text.ts";
import type { Limit } from "#guards/limit/limit.ts";
import { keysOf, kindOf, type LimitKind, type Limits } from "#guards/limit/limited.ts";
import { createAdmission } from "./admission.ts";
import type { BreakerSettings, BreakerView } from "./breaker.ts";
import { createGateBook, type Gate, type GateBook } from "./gate-book.ts";
import type { Guard } from "./guard.ts";
import type { Way } from "./receivers.ts";

export type GuardFact =
  | { kind: "limited"; by: LimitKind | "abreast"; waitMs: number }
  | ({ kind: "breaker"; view: BreakerView; reason: string | undefined } & Way)
  | ({ kind: "pause"; ms: number } & Way);

export type GatesOptions = {
  /** Whose account a provider uses: its name, and the tenant's if it is the tenant's own. */
  accountOf: (provider: Provider) => string;
  limits: Limits;
  limit: Pick<Limit, "take" | "delay">;
  /** A send starts only while the lease has this much left. */
  leaseMarginMs: number;
  monotonic: () => number;
  random: () => number;
  sleep: (ms: number) => Promise<void>;
  tell: (fact: GuardFact) => void;
  breaker?: BreakerSettings;
  mostReceivers?: number;
};

export type Gates = Guard & Pick<GateBook, "states" | "receivers" | "adopt">;

const MOST_PAUSE_MS = 3_600_000;

export function createGates(options: GatesOptions): Gates {
  const { accountOf, limits, limit, leaseMarginMs, monotonic, tell } = options;
  const { of: gateOf, ...book } = createGateBook({
    ...options,
    onBreaker: (way, view, reason) => tell({ kind: "breaker", ...way, view, reason }),
  });
  const admit = createAdmission(options);

  /**
   * A provider that says "too many" is left alone by everybody for as long as it asks. A receiver's word is about itself: the
   * limits of the account that it was reached through are others' too.
   */
  function slowDown(gate: Gate, provider: Provider, message: Message, retryAfterMs: number): void {
    const ms = Math.min(MOST_PAUSE_MS, retryAfterMs);
    const isReceiver = gate.way.tenant !== undefined;
    const keys = isReceiver ? [] : keysOf(limits, provider.name, accountOf(provider), message);
    // The most general first: without a limit of the account the recipient's is what it must have meant.
    const key = keys.find((one) => kindOf(one.key) !== "tenant");
    if (key) {
      limit.delay(key.key, ms).catch(() => undefined);
      return;
    }
    gate.pausedUntil = Math.max(gate.pausedUntil, monotonic() + ms);
    tell({ kind: "pause", ...gate.way, ms });
  }

  return {
    admit(provider, message, turn) {
      const late = latenessOf(turn, monotonic(), leaseMarginMs);
      if (late) return late;
      return admit(gateOf(provider, message), provider, message, turn);
    },
    report(provider, message, ticket, reply) {
      const gate = gateOf(provider, message);
      gate.abreast.leave();
      switch (reply.kind) {
        case "unavailable":
        case "ambiguous":
          gate.lastFailure = cut(reply.reason, 300);
          gate.passage.doubt();
          return gate.breaker.fail(ticket);
        case "limited":
          gate.breaker.release(ticket);
          gate.passage.prove();
          if (reply.retryAfterMs) slowDown(gate, provider, message, reply.retryAfterMs);
          return;
        case "accepted":
        case "rejected":
        case "dead-recipient":
          // It answered. What it thinks of this recipient or this content says nothing against it.
          gate.passage.prove();
          return gate.breaker.succeed(ticket);
      }
    },
    passage: (provider, to) => gateOf(provider, to).passage,
    giveBack(provider, message, ticket) {
      const gate = gateOf(provider, message);
      gate.abreast.leave();
      gate.breaker.release(ticket);
    },
    ...book,
  };
}
