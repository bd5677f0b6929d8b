// Locks in the database that the queue lives in: nothing more to run, and one statement for each verb.
//
// Rows of released locks are removed now and then by whoever releases; two who do it at once do no harm.

import { isOutage, type Queryable } from "#store/connection/database.ts";
import { findLock, forgetLocks, freeLock, renewLock, takeLock } from "#store/locks.ts";
import type { Lock, Unavailable } from "./lock.ts";

export type PostgresLockOptions = {
  db: Queryable;
  /** Who we are, for those who find the lock held. */
  identity: string;
  monotonic: () => number;
};

const FORGET_EVERY_MS = 60_000;
/** Longer than anybody could still believe in a lock that ran out. */
const FORGET_AFTER_MS = 300_000;

export function createPostgresLock({ db, identity, monotonic }: PostgresLockOptions): Lock {
  let forgotAt = monotonic();

  function forget(): void {
    if (monotonic() - forgotAt < FORGET_EVERY_MS) return;
    forgotAt = monotonic();
    // The next one will do it.
    forgetLocks(db, FORGET_AFTER_MS).catch(() => undefined);
  }

  return {
    async acquire(key, ttlMs) {
      const askedAt = monotonic();
      const row = await trying(() => takeLock(db, key, identity, ttlMs));
      if (row === undefined) return { kind: "held", by: "another", expiresInMs: ttlMs };
      if ("kind" in row) return row;
      if ("token" in row) return { kind: "acquired", key, token: row.token, endsAt: askedAt + ttlMs };
      return { kind: "held", by: row.holder, expiresInMs: row.leftMs };
    },
    async renew({ key, token }, ttlMs) {
      const askedAt = monotonic();
      const isOurs = await trying(() => renewLock(db, key, token, ttlMs));
      if (typeof isOurs !== "boolean") return isOurs;
      return isOurs ? { kind: "renewed", endsAt: askedAt + ttlMs } : { kind: "lost" };
    },
    async release({ key, token }) {
      const wasOurs = await trying(() => freeLock(db, key, token));
      if (typeof wasOurs !== "boolean") return wasOurs;
      forget();
      return wasOurs ? { kind: "released" } : { kind: "lost" };
    },
    async holder(key) {
      const found = await trying(() => findLock(db, key));
      if (found === undefined) return { kind: "free" };
      return "kind" in found ? found : { kind: "held", by: found.holder, expiresInMs: found.leftMs };
    },
    // The connections are the database's.
    close: async () => undefined,
  } satisfies Lock;
}

async function trying<Value>(act: () => Promise<Value>): Promise<Value | Unavailable> {
  try {
    return await act();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const detail = code ? { detail: code } : {};
    // Insufficient privilege.
    if (code === "42501") return { kind: "unavailable", reason: "forbidden", ...detail };
    return { kind: "unavailable", reason: isOutage(error) ? "unreachable" : "failed", ...detail };
  }
}
