// The way through a gate: breaker and pause first, then a place among those under way, then the limits. Where none of them is
// in the way the answer comes at once and nothing is kept.

import type { Message, Provider } from "#channels/channel.ts";
import { latenessOf } from "#domain/attempt.ts";
import { createLimiter, keysOf, kindOf } from "#guards/limit/limited.ts";
import type { Gate } from "./gate-book.ts";
import type { GatesOptions } from "./gates.ts";
import type { Admitted, Halt, Turn } from "./guard.ts";

/** Those that a breaker held come back over this much more than it stays open, so that they do not come at once. */
const SPREAD = 0.5;
const LEAST_SPREAD_MS = 500;
const MOST_SPREAD_MS = 10_000;
/** While probes are under way. */
const PROBING_MS = 500;

const ENGINE_AWAY_MS = 1_000;

export type Admit = (gate: Gate, provider: Provider, message: Message, turn: Turn) => Admitted | Promise<Admitted>;

/** Where it is not admitted, the gate is as it was before. */
export function createAdmission(options: GatesOptions): Admit {
  const { accountOf, limits, limit, leaseMarginMs, monotonic, random, sleep, tell } = options;
  const limiter = createLimiter(limit, monotonic);
  const spread = (ms: number, leastMs = LEAST_SPREAD_MS): number =>
    ms + random() * Math.min(MOST_SPREAD_MS, Math.max(leastMs, ms * SPREAD));

  async function limited(gate: Gate, provider: Provider, ticket: number, message: Message, turn: Turn) {
    const keys = keysOf(limits, provider.name, accountOf(provider), message);
    const not = (waitMs: number, reason: string): Halt => {
      gate.breaker.release(ticket);
      gate.abreast.leave();
      return later(waitMs, reason);
    };
    try {
      const taken = await limiter.take(keys, turn);
      if (taken && !taken.isGranted) {
        const by = kindOf(taken.key);
        tell({ kind: "limited", by, waitMs: taken.waitMs });
        return not(taken.waitMs, by === "account" ? `the limit of ${provider.name}` : `the limit of the ${by}`);
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
    const late = latenessOf(turn, monotonic(), leaseMarginMs);
    if (late) {
      gate.breaker.release(ticket);
      gate.abreast.leave();
      return late;
    }
    const openMs = gate.breaker.waitMs();
    if (openMs === 0) return ticket;
    gate.abreast.leave();
    return silent(gate, spread(openMs));
  }

  /** A ticket, where neither breaker nor pause is in the way. */
  function pass(gate: Gate): number | Halt {
    const ticket = gate.breaker.admit();
    if (ticket < 0) return silent(gate, spread(gate.breaker.waitMs() || PROBING_MS));
    if (gate.pausedUntil === 0) return ticket;
    const waitMs = gate.pausedUntil - monotonic();
    if (waitMs > 0) {
      gate.breaker.release(ticket);
      return halt(spread(waitMs, 0), `${gate.name} asked for a pause`);
    }
    gate.pausedUntil = 0;
    return ticket;
  }

  /** With a place among those under way, which is given back if it may not begin. */
  function enter(gate: Gate, provider: Provider, message: Message, turn: Turn): Admitted | Promise<Admitted> {
    const ticket = pass(gate);
    if (typeof ticket !== "number") gate.abreast.leave();
    else if (gate.isLimited || message.endpoint?.rate) return limited(gate, provider, ticket, message, turn);
    return ticket;
  }

  async function enterLater(gate: Gate, provider: Provider, message: Message, turn: Turn): Promise<Admitted> {
    const ticket = pass(gate);
    if (typeof ticket !== "number") return ticket;
    gate.breaker.release(ticket);
    const waited = await gate.abreast.wait(turn);
    if (waited !== true) {
      tell({ kind: "limited", by: "abreast", waitMs: waited });
      return later(waited, `as many as it gets at a time are under way to ${gate.name}`);
    }
    const late = latenessOf(turn, monotonic(), leaseMarginMs);
    if (!late) return enter(gate, provider, message, turn);
    gate.abreast.leave();
    return late;
  }

  return (gate, provider, message, turn) =>
    gate.abreast.enter(turn) ? enter(gate, provider, message, turn) : enterLater(gate, provider, message, turn);
}

/** The next provider of the route may have it. */
const halt = (waitMs: number, reason: string): Halt => ({
  kind: "postponed",
  waitMs: Math.ceil(waitMs),
  reason,
  isPassedOver: true,
});

const silent = ({ name, breaker }: Gate, waitMs: number): Halt => ({
  ...halt(waitMs, `${name} does not answer`),
  silentMs: Math.floor(breaker.silentMs()),
});

/** A matter of time, not of another provider. */
const later = (waitMs: number, reason: string): Halt => ({ ...halt(waitMs, reason), isPassedOver: false });
