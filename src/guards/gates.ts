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
import { createLimiter, isLimited, keysOf, kindOf, type LimitKind, type Limits } from "#guards/limit/limited.ts";
import { type Abreast, createAbreast } from "./abreast.ts";
import { type Breaker, type BreakerSettings, type BreakerState, type BreakerView, createBreaker } from "./breaker.ts";
import type { Admitted, Guard, Halt, Turn } from "./guard.ts";
import { createShares, type Way, wayOf } from "./receivers.ts";

export type GuardFact =
  | { kind: "limited"; by: LimitKind | "abreast"; waitMs: number }
  | ({ kind: "breaker"; view: BreakerView; reason: string | undefined } & Way)
  | ({ kind: "pause"; ms: number } & Way);

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
  mostReceivers?: number;
};

/** What another worker said of an account. */
export type Hint = BreakerView & Way & { pausedMs: number };

export type Gates = Guard & {
  states(): { account: string; state: BreakerState }[];
  /** How many receivers are in each state but closed: they are too many to name. */
  receivers(): { [state in Exclude<BreakerState, "closed">]: number };
  /** False while nothing goes through that account here: then there is nobody to be told. */
  adopt(hint: Hint): boolean;
};

type Gate = {
  way: Way;
  /** How records call it. */
  name: string;
  breaker: Breaker;
  isLimited: boolean;
  pausedUntil: number;
  abreast: Abreast;
  lastFailure?: string;
};

/** Each takes some 2 kB. */
const MOST_RECEIVERS = 10_000;
/** A tenant's server gets fewer at a time than a provider's: one that answers slowly holds what it is given. */
const RECEIVER_ABREAST = 16;

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
  const accounts = new WeakMap<Provider, Gate>();
  const byAccount = new Map<string, Gate>();
  const receivers = createShares<Gate>(
    options.mostReceivers ?? MOST_RECEIVERS,
    ({ abreast }) => abreast.underWay() > 0,
  );
  const limiter = createLimiter(limit, monotonic);

  function open(way: Way, provider: Provider): Gate {
    const isReceiver = way.tenant !== undefined;
    const gate: Gate = {
      way,
      name: isReceiver ? "the receiver" : provider.name,
      isLimited: isLimited(limits, provider.name),
      pausedUntil: 0,
      abreast: createAbreast(isReceiver ? RECEIVER_ABREAST : (provider.capabilities.abreast ?? Infinity), monotonic),
      breaker: createBreaker({
        now: monotonic,
        ...(options.breaker && { settings: options.breaker }),
        onChange: (view) => tell({ kind: "breaker", ...way, view, reason: gate.lastFailure }),
      }),
    };
    return gate;
  }

  function gateOf(provider: Provider, message: Message): Gate {
    if (!provider.receiver) return gateOfAccount(provider);
    const way = wayOf(provider, message, accountOf);
    return way.tenant === undefined
      ? gateOfAccount(provider)
      : receivers.use(way.tenant, way.account, () => open(way, provider));
  }

  function gateOfAccount(provider: Provider): Gate {
    const found = accounts.get(provider);
    if (found) return found;
    const account = accountOf(provider);
    const gate = open({ account }, provider);
    // Other credentials, another chance.
    const before = byAccount.get(account)?.breaker.view().state ?? "closed";
    if (before !== "closed") tell({ kind: "breaker", account, view: gate.breaker.view(), reason: undefined });
    accounts.set(provider, gate);
    byAccount.set(account, gate);
    return gate;
  }

  const spread = (ms: number, leastMs = LEAST_SPREAD_MS): number =>
    ms + random() * Math.min(MOST_SPREAD_MS, Math.max(leastMs, ms * SPREAD));
  const halt = (waitMs: number, reason: string): Halt => ({
    kind: "postponed",
    waitMs: Math.ceil(waitMs),
    reason,
    isPassedOver: true,
  });

  /** A matter of time, not of another provider. */
  const later = (waitMs: number, reason: string): Halt => ({ ...halt(waitMs, reason), isPassedOver: false });

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
    return halt(spread(openMs), `${gate.name} does not answer`);
  }

  /** A ticket, where neither breaker nor pause is in the way. */
  function pass(gate: Gate): number | Halt {
    const ticket = gate.breaker.admit();
    if (ticket < 0) return halt(spread(gate.breaker.waitMs() || PROBING_MS), `${gate.name} does not answer`);
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
    else if (gate.isLimited) return limited(gate, provider, ticket, message, turn);
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
      const gate = gateOf(provider, message);
      if (gate.abreast.enter()) return enter(gate, provider, message, turn);
      return enterLater(gate, provider, message, turn);
    },
    report(provider, message, ticket, reply) {
      const gate = gateOf(provider, message);
      gate.abreast.leave();
      switch (reply.kind) {
        case "unavailable":
        case "ambiguous":
          gate.lastFailure = cut(reply.reason, 300);
          return gate.breaker.fail(ticket);
        case "limited":
          gate.breaker.release(ticket);
          if (reply.retryAfterMs) slowDown(gate, provider, message, reply.retryAfterMs);
          return;
        case "accepted":
        case "rejected":
        case "dead-recipient":
          // It answered. What it thinks of this recipient or this content says nothing against it.
          return gate.breaker.succeed(ticket);
      }
    },
    giveBack(provider, message, ticket) {
      const gate = gateOf(provider, message);
      gate.abreast.leave();
      gate.breaker.release(ticket);
    },
    states: () => [...byAccount].map(([account, { breaker }]) => ({ account, state: breaker.view().state })),
    receivers() {
      const counts = { "half-open": 0, open: 0 };
      for (const { breaker } of receivers.all()) {
        const { state } = breaker.view();
        if (state !== "closed") counts[state]++;
      }
      return counts;
    },
    adopt({ account, tenant, pausedMs, ...view }) {
      const gate = tenant === undefined ? byAccount.get(account) : receivers.find(tenant, account);
      if (!gate) return false;
      gate.breaker.adopt(view);
      if (pausedMs > 0) gate.pausedUntil = Math.max(gate.pausedUntil, monotonic() + pausedMs);
      return true;
    },
  };
}
