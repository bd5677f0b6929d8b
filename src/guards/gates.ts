// The guard of a worker: a gate per account with a provider, with its breaker and its limits.
//
// What an outage teaches one worker it tells the others, as a hint. State: the gates, by provider.

import type { Message, Provider } from "../channels/channel.ts";
import { type Breaker, type BreakerSettings, type BreakerState, type BreakerView, createBreaker } from "./breaker.ts";
import type { Guard, Held, Turn } from "./guard.ts";
import type { Limit } from "./limit.ts";
import { createLimiter, isLimited, keysOf, kindOf, type LimitKind, type Limits } from "./limited.ts";

export type GuardFact =
  | { kind: "limited"; by: LimitKind; waitMs: number }
  | { kind: "breaker"; account: string; view: BreakerView; reason: string | undefined }
  | { kind: "pause"; account: string; ms: number };

export type GatesOptions = {
  /** Whose account a provider uses: its name, and the tenant's if it is the tenant's own. */
  accountOf: (provider: Provider) => string;
  limits: Limits;
  limit: Limit;
  /** A send starts only while the lease has this much left. */
  leaseMarginMs: number;
  monotonic: () => number;
  random: () => number;
  sleep: (ms: number) => Promise<void>;
  tell: (fact: GuardFact) => void;
  breaker?: BreakerSettings;
};

/** What another worker said of an account. */
export type Hint = BreakerView & { account: string; pausedMs: number };

export type Gates = Guard & {
  states(): { account: string; state: BreakerState }[];
  /** False while nothing goes through that account here: then there is nobody to be told. */
  adopt(hint: Hint): boolean;
};

type Gate = { account: string; breaker: Breaker; isLimited: boolean; pausedUntil: number; lastFailure?: string };

/** Those that a breaker held come back over this much more than it stays open, so that they do not come at once. */
const SPREAD = 0.5;
const LEAST_SPREAD_MS = 500;
const MOST_SPREAD_MS = 10_000;
/** While probes are under way. */
const PROBING_MS = 500;
const MOST_PAUSE_MS = 3_600_000;
const ENGINE_AWAY_MS = 1_000;

export function createGates(options: GatesOptions): Gates {
  const { accountOf, limits, limit, leaseMarginMs, monotonic, random, sleep, tell } = options;
  const gates = new WeakMap<Provider, Gate>();
  const byAccount = new Map<string, Gate>();
  const limiter = createLimiter(limit, monotonic);

  function gateOf(provider: Provider): Gate {
    const found = gates.get(provider);
    if (found) return found;
    const account = accountOf(provider);
    const gate: Gate = {
      account,
      isLimited: isLimited(limits, provider.name),
      pausedUntil: 0,
      breaker: createBreaker({
        now: monotonic,
        ...(options.breaker && { settings: options.breaker }),
        onChange: (view) => tell({ kind: "breaker", account, view, reason: gate.lastFailure }),
      }),
    };
    // Other credentials, another chance.
    const before = byAccount.get(account)?.breaker.view().state ?? "closed";
    if (before !== "closed") tell({ kind: "breaker", account, view: gate.breaker.view(), reason: undefined });
    gates.set(provider, gate);
    byAccount.set(account, gate);
    return gate;
  }

  const spread = (ms: number, leastMs = LEAST_SPREAD_MS): number =>
    ms + random() * Math.min(MOST_SPREAD_MS, Math.max(leastMs, ms * SPREAD));
  const held = (waitMs: number, reason: string): Held => ({
    kind: "postponed",
    waitMs: Math.ceil(waitMs),
    reason,
    isPassedOver: true,
  });

  async function limited(gate: Gate, name: string, ticket: number, message: Message, turn: Turn) {
    const keys = keysOf(limits, name, gate.account, message);
    const not = (waitMs: number, reason: string): Held => {
      gate.breaker.release(ticket);
      return { ...held(waitMs, reason), isPassedOver: false };
    };
    try {
      const taken = await limiter.take(keys, turn);
      if (taken && !taken.isGranted) {
        const by = kindOf(taken.key);
        tell({ kind: "limited", by, waitMs: taken.waitMs });
        return not(taken.waitMs, by === "account" ? `the limit of ${name}` : `the limit of the ${by}`);
      }
      if (taken && taken.afterMs > 0) {
        tell({ kind: "limited", by: kindOf(keys[0]?.key ?? ""), waitMs: taken.afterMs });
        // Timers may fire a little early.
        await sleep(Math.ceil(taken.afterMs) + 1);
      }
    } catch {
      // Nobody knows what is left, so nobody sends: the limits hold.
      return not(spread(ENGINE_AWAY_MS), "limits cannot be read");
    }
    // Time has passed: what was granted is lost rather than sent too late, or to somebody who is down by now.
    if (!mayBegin(turn)) return not(0, "its limits took too long");
    const openMs = gate.breaker.waitMs();
    return openMs > 0 ? held(spread(openMs), `${name} does not answer`) : ticket;
  }

  function mayBegin({ lease, expiresAtMs = Number.POSITIVE_INFINITY }: Turn): boolean {
    const now = monotonic();
    return now < lease.endsAt - leaseMarginMs && lease.claimedAtMs + (now - lease.claimedAt) < expiresAtMs;
  }

  /** A provider that says "too many" is left alone by everybody for as long as it asks. */
  function slowDown(gate: Gate, name: string, message: Message, retryAfterMs: number): void {
    const ms = Math.min(MOST_PAUSE_MS, retryAfterMs);
    const [key] = keysOf(limits, name, gate.account, message).filter((one) => kindOf(one.key) !== "tenant");
    // The most general first: without a limit of the account the recipient's is what it must have meant.
    if (key) {
      limit.delay(key.key, ms).catch(() => undefined);
      return;
    }
    gate.pausedUntil = Math.max(gate.pausedUntil, monotonic() + ms);
    tell({ kind: "pause", account: gate.account, ms });
  }

  return {
    admit(provider, message, turn) {
      const gate = gateOf(provider);
      const ticket = gate.breaker.admit();
      if (ticket < 0) {
        const waitMs = gate.breaker.waitMs();
        return held(spread(waitMs || PROBING_MS), `${provider.name} does not answer`);
      }
      if (gate.pausedUntil > 0) {
        const waitMs = gate.pausedUntil - monotonic();
        if (waitMs > 0) {
          gate.breaker.release(ticket);
          return held(spread(waitMs, 0), `${provider.name} asked for a pause`);
        }
        gate.pausedUntil = 0;
      }
      return gate.isLimited ? limited(gate, provider.name, ticket, message, turn) : ticket;
    },
    report(provider, message, ticket, reply) {
      const gate = gateOf(provider);
      switch (reply.kind) {
        case "unavailable":
        case "ambiguous":
          gate.lastFailure = reply.reason.slice(0, 300);
          return gate.breaker.fail(ticket);
        case "limited":
          gate.breaker.release(ticket);
          if (reply.retryAfterMs) slowDown(gate, provider.name, message, reply.retryAfterMs);
          return;
        case "accepted":
        case "rejected":
        case "dead-recipient":
          // It answered. What it thinks of this recipient or this content says nothing against it.
          return gate.breaker.succeed(ticket);
      }
    },
    states: () => [...byAccount.values()].map(({ account, breaker }) => ({ account, state: breaker.view().state })),
    adopt({ account, pausedMs, ...view }) {
      const gate = byAccount.get(account);
      if (!gate) return false;
      gate.breaker.adopt(view);
      if (pausedMs > 0) gate.pausedUntil = Math.max(gate.pausedUntil, monotonic() + pausedMs);
      return true;
    },
  };
}
