// Which limits a send is under, and taking from all of them.
//
// Where rates are high a few are taken ahead, so that the engine sees few calls. What is not used soon is given up: a worker that
// stood still must not send at once what it took long ago.

import { createHash } from "node:crypto";
import type { Message } from "../channels/channel.ts";
import { blockOf, intervalMs, type Rate } from "../domain/gcra.ts";
import type { Ask, Limit, Place, Taken } from "./limit.ts";

export type ProviderLimits = { account?: readonly Rate[]; recipient?: readonly Rate[] };
export type Limits = {
  readonly providers: { readonly [name: string]: ProviderLimits };
  /** For every tenant. */
  readonly tenant: readonly Rate[];
  /** For every recipient of a tenant on a channel, whoever carries it. */
  readonly recipient: readonly Rate[];
};
export type LimitKind = "account" | "recipient" | "tenant";

export const NO_LIMITS: Limits = { providers: {}, tenant: [], recipient: [] };

/** What is taken ahead is good for this long. */
const BLOCK_KEPT_MS = 50;
/** Longer waits are spent in the schedule, where they occupy nobody. */
const PATIENCE_MS = 200;
/** Nor do more than about this many wait inside their leases for the same limit, in all processes together. */
const MOST_WAITING = 50;

type Keyed = { key: string; rates: readonly Rate[] };

export const accountKey = (account: string): string => `account:${account}`;
export const tenantKey = (tenant: number): string => `tenant:${tenant}`;
export const kindOf = (key: string): LimitKind =>
  key.startsWith("account:") ? "account" : key.startsWith("tenant:") ? "tenant" : "recipient";

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
  const of = limits.providers[name];
  const keys: Keyed[] = [];
  if (of?.account?.length) keys.push({ key: accountKey(account), rates: of.account });
  if (of?.recipient?.length) keys.push({ key: recipientKey(account, message), rates: of.recipient });
  if (limits.recipient.length > 0) keys.push({ key: recipientKey("", message), rates: limits.recipient });
  if (limits.tenant.length > 0) keys.push({ key: tenantKey(message.tenant), rates: limits.tenant });
  return keys;
}

export const isLimited = (limits: Limits, name: string): boolean =>
  limits.tenant.length > 0 ||
  limits.recipient.length > 0 ||
  (limits.providers[name]?.account?.length ?? 0) > 0 ||
  (limits.providers[name]?.recipient?.length ?? 0) > 0;

export type Limiter = {
  /** Undefined: granted out of what was taken ahead. */
  take(keys: readonly Keyed[], place: Place): Promise<Taken> | undefined;
};

type Block = { left: number; until: number };

export function createLimiter(limit: Limit, monotonic: () => number): Limiter {
  const blocks = new Map<string, Block>();
  /** Keys of which a block is on its way: one at a time, or many who ask together would take far too much. */
  const asked = new Set<string>();
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
  /** One out of what was taken ahead. */
  const spend = (key: string, now: number): boolean => {
    const block = blocks.get(key);
    if (!block) return false;
    if (now >= block.until) {
      blocks.delete(key);
      return false;
    }
    if (--block.left === 0) blocks.delete(key);
    return true;
  };

  async function ask(short: readonly Keyed[], place: Place, now: number): Promise<Taken> {
    const ahead = short.filter(({ key, rates }) => sizeOf(rates).block > 1 && !asked.has(key));
    for (const { key } of ahead) asked.add(key);
    const asks = short.map((one): Ask => ({ ...one, n: ahead.includes(one) ? sizeOf(one.rates).block : 1 }));
    try {
      const taken = await limit.take(asks, place, Math.min(...short.map(({ rates }) => sizeOf(rates).patienceMs)));
      if (taken.isGranted && taken.isFull) {
        for (const { key, n } of asks) if (n > 1) blocks.set(key, { left: n - 1, until: now + BLOCK_KEPT_MS });
      }
      return taken;
    } finally {
      for (const { key } of ahead) asked.delete(key);
    }
  }

  return {
    take(keys, place) {
      const now = monotonic();
      // What is spent here although another key then refuses is lost: fewer than allowed, never more.
      const short = keys.filter(({ key }) => !spend(key, now));
      return short.length === 0 ? undefined : ask(short, place, now);
    },
  };
}
