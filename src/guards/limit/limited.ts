// Which limits a send is under, and taking from all of them.
//
// Where rates are high a few are taken ahead, so that the engine sees few calls: whoever comes while they are on their way waits
// for them. What is not used soon is given up: a worker that stood still must not send at once what it took long ago.

import { createHash } from "node:crypto";
import type { Endpoint } from "#channels/callback/endpoint.ts";
import type { Message } from "#channels/channel.ts";
import { blockOf, intervalMs, type Rate } from "#domain/gcra.ts";
import type { Demand, Limit, Standing, Taken } from "./limit.ts";

export type ProviderLimits = { account?: readonly Rate[]; recipient?: readonly Rate[] };
export type Limits = {
  readonly providers: { readonly [name: string]: ProviderLimits };
  /** For every tenant. */
  readonly tenant: readonly Rate[];
  /** For every recipient of a tenant on a channel, whoever carries it. */
  readonly recipient: readonly Rate[];
};
export type LimitKind = "account" | "recipient" | "tenant" | "endpoint";

export const NO_LIMITS: Limits = { providers: {}, tenant: [], recipient: [] };

/** What is taken ahead is good for this long. */
const BLOCK_KEPT_MS = 50;
/** Longer waits are spent in the schedule, where they occupy nobody. */
const PATIENCE_MS = 200;
/** Nor do more than about this many wait inside their leases for the same limit, in all processes together. */
const MOST_WAITING = 100;
/** Who comes back from the schedule comes this share of its patience too early, so that no slot stays empty. */
const EARLY = 0.75;

type Keyed = { key: string; rates: readonly Rate[] };

export const accountKey = (account: string): string => `account:${account}`;
export const tenantKey = (tenant: number): string => `tenant:${tenant}`;
export const kindOf = (key: string): LimitKind => KINDS.find((kind) => key.startsWith(`${kind}:`)) ?? "recipient";
const KINDS = ["account", "tenant", "endpoint"] as const;

/** Addresses are of any length and nobody's business. */
function recipientKey(scope: string, { tenant, request: { channel, recipient = {} }, device }: Message): string {
  const { email, phone, slackChannel, webhookUrl, userId } = recipient;
  const address =
    device?.token ??
    (channel === "email" ? email : channel === "sms" ? phone : channel === "slack" ? slackChannel : undefined) ??
    webhookUrl ??
    userId ??
    "";
  const hash = createHash("sha256").update(`${tenant} ${channel} ${address.toLowerCase()}`).digest("base64url");
  return `recipient:${scope}:${hash.slice(0, 22)}`;
}

/** The keys that a message through an account is counted under. */
export function keysOf(limits: Limits, name: string, account: string, message: Message): Keyed[] {
  // Callbacks are under the rate that their endpoint asks for, and no other.
  if (message.endpoint) return keyOfEndpoint(message.endpoint);
  const of = limits.providers[name];
  const keys: Keyed[] = [];
  if (of?.account?.length) keys.push({ key: accountKey(account), rates: of.account });
  if (of?.recipient?.length) keys.push({ key: recipientKey(account, message), rates: of.recipient });
  if (limits.recipient.length > 0) keys.push({ key: recipientKey("", message), rates: limits.recipient });
  if (limits.tenant.length > 0) keys.push({ key: tenantKey(message.tenant), rates: limits.tenant });
  return keys;
}

const ratesOf = new WeakMap<Rate, readonly Rate[]>();

/** The same list for the same rate: what is known of it is known by that. */
function keyOfEndpoint({ tenant, id, rate }: Endpoint): Keyed[] {
  if (!rate) return [];
  const rates = ratesOf.get(rate) ?? [rate];
  ratesOf.set(rate, rates);
  return [{ key: `endpoint:${tenant} ${id}`, rates }];
}

export const isLimited = (limits: Limits, name: string): boolean =>
  limits.tenant.length > 0 ||
  limits.recipient.length > 0 ||
  (limits.providers[name]?.account?.length ?? 0) > 0 ||
  (limits.providers[name]?.recipient?.length ?? 0) > 0;

export type Limiter = {
  /** Undefined: granted out of what was taken ahead. */
  take(keys: readonly Keyed[], standing: Standing): Promise<Taken> | undefined;
};

/** Good between two moments of our monotonic clock. */
type Block = { left: number; from: number; until: number };

export function createLimiter(limit: Pick<Limit, "take">, monotonic: () => number): Limiter {
  const blocks = new Map<string, Block>();
  /** Blocks on their way: one of a key at a time, or many who ask together would take far too much. */
  const coming = new Map<string, Promise<unknown>>();
  const sizes = new WeakMap<readonly Rate[], { block: number; patienceMs: number }>();
  const sizeOf = (rates: readonly Rate[]) => {
    let size = sizes.get(rates);
    if (!size) {
      const quickest = Math.min(...rates.map((rate) => intervalMs(rate)));
      size = { block: blockOf(rates), patienceMs: Math.min(PATIENCE_MS, MOST_WAITING * quickest) };
      sizes.set(rates, size);
    }
    return size;
  };
  const blockLeft = (key: string, now: number): Block | undefined => {
    const block = blocks.get(key);
    if (!block || (block.left > 0 && now < block.until)) return block;
    blocks.delete(key);
    return undefined;
  };

  async function ask(short: readonly Keyed[], standing: Standing): Promise<Taken> {
    const ahead = short.filter(({ key, rates }) => sizeOf(rates).block > 1 && !coming.has(key));
    const demands = short.map((one): Demand => ({ ...one, n: ahead.includes(one) ? sizeOf(one.rates).block : 1 }));
    const patienceMs = Math.min(...short.map(({ rates }) => sizeOf(rates).patienceMs));
    const asked = limit.take(demands, standing, patienceMs);
    for (const { key } of ahead) coming.set(key, asked);
    try {
      const taken = await asked;
      if (!taken.isGranted) return { ...taken, waitMs: Math.max(0, taken.waitMs - EARLY * patienceMs) };
      if (taken.isFull) {
        // The moment at which it was answered is later than the one at which it was granted: never too early.
        const from = monotonic() + taken.afterMs;
        for (const { key, n } of demands)
          if (n > 1) blocks.set(key, { left: n - 1, from, until: from + BLOCK_KEPT_MS });
      }
      return taken;
    } finally {
      for (const { key } of ahead) coming.delete(key);
    }
  }

  function takeNow(keys: readonly Keyed[], standing: Standing): Promise<Taken> | undefined {
    const now = monotonic();
    const short: Keyed[] = [];
    let from = now;
    for (const one of keys) {
      // What is spent here although another key then refuses is lost: fewer than allowed, never more.
      const block = blockLeft(one.key, now);
      if (!block) short.push(one);
      else {
        block.left--;
        from = Math.max(from, block.from);
      }
    }
    if (short.length === 0) {
      return from > now ? Promise.resolve({ isGranted: true, afterMs: from - now, isFull: false }) : undefined;
    }
    return ask(short, standing).then((taken) =>
      taken.isGranted ? { ...taken, afterMs: Math.max(taken.afterMs, from - monotonic()) } : taken,
    );
  }

  return {
    take(keys, standing) {
      if (coming.size > 0) {
        const now = monotonic();
        const late = keys.find(({ key }) => coming.has(key) && !blockLeft(key, now));
        const flight = late && coming.get(late.key);
        const again = () => takeNow(keys, standing) ?? AT_ONCE;
        if (flight) return flight.then(again, again);
      }
      return takeNow(keys, standing);
    },
  };
}

const AT_ONCE: Taken = { isGranted: true, afterMs: 0, isFull: false };
