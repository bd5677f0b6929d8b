// Finds out who asks: the one place where keys, tokens and sessions become actors.
//
// A key that was right a moment ago is remembered for a few seconds, so that a busy sender costs no
// query per request; a revoked key therefore works on other replicas for that long, on the replica
// that revoked it not at all. An address that keeps coming with wrong keys is told to wait; right keys
// from the same address, a proxy perhaps, still pass.

import type { Caller, KeyActor, UserActor } from "#domain/actor.ts";
import { allows, hashOf, idOfKey, isSameHash, type Needed } from "#domain/api-key.ts";
import { Problem } from "#domain/problems.ts";
import { idOfSession } from "#domain/session.ts";
import { isToken } from "#domain/subscriber-token.ts";
import type { SubscriberTokens } from "#inbox/tokens.ts";
import { FIXED_KEY_ID } from "#steps/manage/sessions.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findKey, recordUses, type StoredKey } from "#store/keys.ts";
import { findSession, type StoredSession } from "#store/sessions.ts";
import { createRefuse, type Refuse } from "./failed-logins.ts";
import { createRemembered } from "./remembered.ts";

/** Whose inbox is asked for, and the token that came in a cookie. */
export type AskedInbox = { userId: string; token: string | undefined };

export type AuthenticateOptions = {
  db: Queryable;
  /** CARILLON_API_KEY: an admin key of the default tenant that is not stored. */
  fixedKey: string | undefined;
  /** Without it, no subscriber is let in. */
  tokens?: SubscriberTokens;
  /** What expiries of keys and tokens are judged by. */
  now: () => number;
  /** The true time: for sessions, and for what is remembered a while. */
  trueNow?: () => number;
  onFailure?: () => void;
};

/** What somebody came with: the header Authorization, or the token of a session. */
export type Asked = {
  header: string | undefined;
  address: string;
  needed: Needed;
  /** That user's subscriber may pass as well. */
  inbox?: AskedInbox | undefined;
  session?: string | undefined;
};

export type Authenticate = {
  authenticate(asked: Asked): Promise<Caller>;
  forget(keyId: string): void;
  forgetSession(sessionId: string): void;
  /** Whether who was let in would be so still. */
  isAlive(actor: KeyActor): Promise<boolean>;
  /** Writes when keys were last used; called now and then, and at the end. */
  flushUses(): Promise<void>;
};

const DEFAULT_TENANT = 1;

const FIXED_ACTOR: KeyActor = {
  kind: "key",
  keyId: FIXED_KEY_ID,
  keyName: "CARILLON_API_KEY",
  tenant: DEFAULT_TENANT,
  tenantName: "default",
  scopes: ["admin"],
};

type KnownKey = { key: StoredKey; actor: KeyActor };

export function createAuthenticate({
  db,
  fixedKey,
  tokens,
  now,
  trueNow = now,
  onFailure,
}: AuthenticateOptions): Authenticate {
  const fixedHash = fixedKey === undefined ? undefined : hashOf(fixedKey);
  // Annotated: else what follows a call is not known to be unreachable.
  const refuse: Refuse = createRefuse(trueNow, onFailure);
  const keys = createRemembered(async (id) => knownKey(await findKey(db, id)), trueNow);
  const sessions = createRemembered((id) => findSession(db, id), trueNow);
  let uses = new Map<string, Date>();

  async function find(given: string, address: string): Promise<KeyActor> {
    const hash = hashOf(given);
    if (fixedHash && isSameHash(hash, fixedHash)) return FIXED_ACTOR;
    const id = idOfKey(given);
    if (id === undefined) refuse(address, "the API key is not of the form ck_<id>_<secret>");
    const known = await keys.get(id);
    if (!known || !isSameHash(known.key.hash, hash)) refuse(address, "the API key is not known");
    return alive(known, address);
  }

  function alive({ key, actor }: KnownKey, address: string): KeyActor {
    if (key.revokedAt) refuse(address, "the API key has been revoked");
    if (key.expiresAt && key.expiresAt.getTime() <= now()) refuse(address, "the API key has expired");
    uses.set(key.id, new Date(now()));
    return actor;
  }

  /** The key that a session stands for, unless it is over. */
  async function behind(session: StoredSession): Promise<KnownKey | "fixed" | undefined> {
    if (session.expiresAt.getTime() <= trueNow()) return undefined;
    if (session.keyId !== null) return keys.get(session.keyId);
    return fixedHash && isSameHash(session.fixedHash, fixedHash) ? "fixed" : undefined;
  }

  async function signedIn(token: string, address: string): Promise<KeyActor> {
    const id = idOfSession(token);
    const session = id === undefined ? undefined : await sessions.get(id);
    if (!session || !isSameHash(session.hash, hashOf(token)))
      refuse(address, "the session is not known: sign in again");
    const key = await behind(session);
    // Every session ends like this, and its browser does not know: it was no guess.
    if (!key) throw new Problem("UNAUTHENTICATED", "the session is over: sign in again");
    return { ...(key === "fixed" ? FIXED_ACTOR : alive(key, address)), session: session.id };
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
    async authenticate({ header, address, needed, inbox, session }) {
      const given = header === undefined ? inbox?.token : /^Bearer +(\S+) *$/i.exec(header)?.[1];
      if (given === undefined && (header !== undefined || session === undefined)) {
        throw new Problem("UNAUTHENTICATED", "send the header Authorization: Bearer <key>");
      }
      if (given !== undefined && isToken(given)) return subscribed(given, address, inbox);
      const actor = await (given === undefined ? signedIn(session as string, address) : find(given, address));
      if (!allows(actor.scopes, needed)) throw new Problem("FORBIDDEN", `this needs the scope ${needed}`);
      return actor;
    },
    async isAlive({ keyId, session: id }) {
      const session = id === undefined ? undefined : await sessions.get(id);
      if (id !== undefined && (!session || !(await behind(session)))) return false;
      if (keyId === FIXED_KEY_ID) return true;
      const key = (await keys.get(keyId))?.key;
      return key !== undefined && !key.revokedAt && !(key.expiresAt && key.expiresAt.getTime() <= now());
    },
    forget: keys.forget,
    forgetSession: sessions.forget,
    async flushUses() {
      if (uses.size === 0) return;
      const used = uses;
      uses = new Map();
      await recordUses(db, used);
    },
  };
}

function knownKey(key: StoredKey | undefined): KnownKey | undefined {
  if (!key) return undefined;
  const { id: keyId, name: keyName, tenant, tenantName, scopes } = key;
  return { key, actor: { kind: "key", keyId, keyName, tenant, tenantName, scopes } };
}
