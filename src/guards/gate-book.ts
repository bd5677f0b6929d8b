// The gates there are: one per account with a provider, and one per receiver of a tenant. Each has its breaker, its pause
// and the places of those under way.

import type { Provider } from "#channels/channel.ts";
import { isLimited, type Limits } from "#guards/limit/limited.ts";
import { type Abreast, createAbreast } from "./abreast.ts";
import { type Breaker, type BreakerSettings, type BreakerState, type BreakerView, createBreaker } from "./breaker.ts";
import { Passage } from "./passage.ts";
import { createShares, type To, type Way, wayOf } from "./receivers.ts";

export type Gate = {
  way: Way;
  /** How records call it. */
  name: string;
  breaker: Breaker;
  isLimited: boolean;
  pausedUntil: number;
  abreast: Abreast;
  passage: Passage;
  lastFailure?: string;
};

/** What another worker said of an account. */
export type Hint = BreakerView & Way & { pausedMs: number };

export type GateBook = {
  of(provider: Provider, to: To): Gate;
  states(): { account: string; state: BreakerState }[];
  /** How many receivers are in each state but closed: they are too many to name. */
  receivers(): { [state in Exclude<BreakerState, "closed">]: number };
  /** False while nothing goes through that account here: then there is nobody to be told. */
  adopt(hint: Hint): boolean;
};

export type GateBookOptions = {
  /** Whose account a provider uses: its name, and the tenant's if it is the tenant's own. */
  accountOf: (provider: Provider) => string;
  limits: Limits;
  monotonic: () => number;
  onBreaker: (way: Way, view: BreakerView, reason: string | undefined) => void;
  breaker?: BreakerSettings;
  mostReceivers?: number;
};

/** Each takes some 2 kB. */
const MOST_RECEIVERS = 10_000;
/** A tenant's server gets fewer at a time than a provider's: one that answers slowly holds what it is given. Two are kept for urgent and high ones. */
const RECEIVER_ABREAST = 18;

export function createGateBook(options: GateBookOptions): GateBook {
  const { accountOf, limits, monotonic, onBreaker } = options;
  const accounts = new WeakMap<Provider, Gate>();
  const byAccount = new Map<string, Gate>();
  const receivers = createShares<Gate>(
    options.mostReceivers ?? MOST_RECEIVERS,
    ({ abreast, passage }) => abreast.underWay() > 0 || passage.held > 0,
  );

  function open(way: Way, provider: Provider): Gate {
    const isReceiver = way.tenant !== undefined;
    const most = isReceiver ? RECEIVER_ABREAST : (provider.capabilities.abreast ?? Number.POSITIVE_INFINITY);
    const isShut = () => gate.breaker.waitMs() > 0 || (gate.pausedUntil > 0 && gate.pausedUntil > monotonic());
    const gate: Gate = {
      way,
      name: isReceiver ? "the receiver" : provider.name,
      isLimited: isLimited(limits, provider.name),
      pausedUntil: 0,
      abreast: createAbreast(most, monotonic),
      passage: new Passage(most, isReceiver, isShut, monotonic),
      breaker: createBreaker({
        now: monotonic,
        ...(options.breaker && { settings: options.breaker }),
        onChange: (view) => onBreaker(way, view, gate.lastFailure),
      }),
    };
    return gate;
  }

  /** Of the send that was asked for last: whoever asks for its way asks for its gate right after. */
  let last:
    | { provider: Provider; request: To["request"]; device: To["device"]; tenant: number; gate: Gate }
    | undefined;

  function gateOf(provider: Provider, to: To): Gate {
    if (!provider.receiver) return gateOfAccount(provider);
    const { request, device, tenant } = to;
    if (last?.request === request && last.provider === provider && last.device === device && last.tenant === tenant)
      return last.gate;
    const way = wayOf(provider, to, accountOf);
    const gate =
      way.tenant === undefined
        ? gateOfAccount(provider)
        : receivers.use(way.tenant, way.account, () => open(way, provider));
    last = { provider, request, device, tenant, gate };
    return gate;
  }

  function gateOfAccount(provider: Provider): Gate {
    const found = accounts.get(provider);
    if (found) return found;
    const account = accountOf(provider);
    const gate = open({ account }, provider);
    // Other credentials, another chance.
    const before = byAccount.get(account)?.breaker.view().state ?? "closed";
    if (before !== "closed") onBreaker({ account }, gate.breaker.view(), undefined);
    accounts.set(provider, gate);
    byAccount.set(account, gate);
    return gate;
  }

  return {
    of: gateOf,
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
