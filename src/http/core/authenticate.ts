// Finds out who asks: the one place where keys and tokens become actors.
//
// A key that was right a moment ago is remembered for a few seconds, so that a busy sender costs no
// query per request; a revoked key therefore works on other replicas for that long, on the replica
// that revoked it not at all. An address that keeps coming with wrong keys is told to wait; right keys
// from the same address, a proxy perhaps, still pass.

import type { Caller, KeyActor, UserActor } from "#domain/actor.ts";
import { allows, hashOf, idOfKey, isSameHash, type Scope } from "#domain/api-key.ts";
import { Problem } from "#domain/problems.ts";
import { isToken } from "#domain/subscriber-token.ts";
import type { SubscriberTokens } from "#inbox/tokens.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findKey, recordUses, type StoredKey } from "#store/keys.ts";

/** Whose inbox is asked for, and the token that came in a cookie. */
export type AskedInbox = { userId: string; token: string | undefined };

export type AuthenticateOptions = {
  db: Queryable;
  /** CARILLON_API_KEY: an admin key of the default tenant that is not stored. */
  fixedKey: string | undefined;
  /** Without it, no subscriber is let in. */
  tokens?: SubscriberTokens;
  now: () => number;
  onFailure?: () => void;
};

export type Authenticate = {
  /** With an inbox, that user's subscriber may pass as well. */
  authenticate(header: string | undefined, address: string, needed: Scope, inbox?: AskedInbox): Promise<Caller>;
  forget(keyId: string): void;
  /** Whether a key that was let in would be so still. */
  isAlive(keyId: string): Promise<boolean>;
  /** Writes when keys were last used; called now and then, and at the end. */
  flushUses(): Promise<void>;
};

const REMEMBER_MS = 5_000;
const MAX_REMEMBERED = 10_000;
const FAILURES_ALLOWED = 20;
const FAILURES_WINDOW_MS = 60_000;
const DEFAULT_TENANT = 1;

type Remembered = { key: StoredKey; actor: KeyActor; untilMs: number };

export function createAuthenticate({ db, fixedKey, tokens, now, onFailure }: AuthenticateOptions): Authenticate {
  const fixedHash = fixedKey === undefined ? undefined : hashOf(fixedKey);
  const fixedActor: KeyActor = {
    kind: "key",
    keyId: "environment",
    keyName: "CARILLON_API_KEY",
    tenant: DEFAULT_TENANT,
    tenantName: "default",
    scopes: ["admin"],
  };
  const remembered = new Map<string, Remembered>();
  const failures = new Map<string, { count: number; untilMs: number }>();
  let uses = new Map<string, Date>();

  function refuse(address: string, detail: string): never {
    onFailure?.();
    const entry = failures.get(address);
    if (!entry || entry.untilMs <= now()) {
      remember(failures, address, { count: 1, untilMs: now() + FAILURES_WINDOW_MS });
    } else if (++entry.count > FAILURES_ALLOWED) {
      const retryAfterSeconds = Math.ceil((entry.untilMs - now()) / 1000);
      throw new Problem("TOO_MANY_FAILED_LOGINS", `${detail}; wait ${retryAfterSeconds} s`, { retryAfterSeconds });
    }
    throw new Problem("UNAUTHENTICATED", detail);
  }

  async function find(given: string, address: string): Promise<KeyActor> {
    const hash = hashOf(given);
    if (fixedHash && isSameHash(hash, fixedHash)) return fixedActor;
    const id = idOfKey(given);
    const known = id === undefined ? undefined : remembered.get(id);
    if (known && known.untilMs > now() && isSameHash(known.key.hash, hash)) return alive(known, address);

    if (id === undefined) refuse(address, "the API key is not of the form ck_<id>_<secret>");
    const key = await findKey(db, id);
    if (!key || !isSameHash(key.hash, hash)) refuse(address, "the API key is not known");
    const { name: keyName, tenant, tenantName, scopes } = key;
    const actor: KeyActor = { kind: "key", keyId: id, keyName, tenant, tenantName, scopes };
    const entry = { key, actor, untilMs: now() + REMEMBER_MS };
    alive(entry, address);
    remember(remembered, id, entry);
    return actor;
  }

  function alive({ key, actor }: Remembered, address: string): KeyActor {
    if (key.revokedAt) refuse(address, "the API key has been revoked");
    if (key.expiresAt && key.expiresAt.getTime() <= now()) refuse(address, "the API key has expired");
    uses.set(key.id, new Date(now()));
    return actor;
  }

  async function subscribed(token: string, address: string, inbox: AskedInbox | undefined): Promise<UserActor> {
    const subscriber = await tokens?.read(token);
    if (!subscriber) refuse(address, "the token is not one of ours");
    // Every token ends like this: it says nothing about whoever still has it.
    if (subscriber.expiresAtMs <= now()) throw new Problem("UNAUTHENTICATED", "the token has expired");
    if (!inbox) throw new Problem("FORBIDDEN", "a subscriber's token is for an inbox only");
    if (inbox.userId !== subscriber.userId) throw new Problem("FORBIDDEN", "the token is for another user's inbox");
    return { kind: "user", ...subscriber };
  }

  return {
    async authenticate(header, address, needed, inbox) {
      const given = header === undefined ? inbox?.token : /^Bearer +(\S+) *$/i.exec(header)?.[1];
      if (given === undefined) throw new Problem("UNAUTHENTICATED", "send the header Authorization: Bearer <key>");
      if (isToken(given)) return subscribed(given, address, inbox);
      const actor = await find(given, address);
      if (!allows(actor.scopes, needed)) throw new Problem("FORBIDDEN", `this needs the scope ${needed}`);
      return actor;
    },
    async isAlive(keyId) {
      if (keyId === fixedActor.keyId) return true;
      const known = remembered.get(keyId);
      const key = known && known.untilMs > now() ? known.key : await findKey(db, keyId);
      return key !== undefined && !key.revokedAt && !(key.expiresAt && key.expiresAt.getTime() <= now());
    },
    forget: (keyId) => void remembered.delete(keyId),
    async flushUses() {
      if (uses.size === 0) return;
      const used = uses;
      uses = new Map();
      await recordUses(db, used);
    },
  };
}

/** Maps keep the order of insertion: the first is the oldest. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size >= MAX_REMEMBERED) map.delete(map.keys().next().value as string);
  map.delete(key);
  map.set(key, value);
}
