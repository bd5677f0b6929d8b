// The contract of a lock across processes: one holder per key, for a while.
//
// A lock is a lease: whoever holds it says how long, renews it while it works, and loses it by silence. Whatever can be
// expected to go wrong is a value. Every adapter passes test/conformance/lock.ts.

/** Long enough for two missed renewals. */
export const LOCK_TTL_MS = 30_000;
export const LOCK_RENEW_MS = 10_000;

/** A lock in hand. The token is greater than that of every holder of the key before. */
export type Hold = {
  kind: "acquired";
  key: string;
  token: number;
  /** Ours until then on our own monotonic clock; counted from before we asked, so never too late. */
  endsAt: number;
};

/** `by` may be ourselves: a lock is not re-entrant. It is free after `expiresInMs` unless its holder renews it. */
export type HeldByOther = { kind: "held"; by: string; expiresInMs: number };

/** Few words, so that a metric can be labelled with them. */
export type LockTrouble = "forbidden" | "unreachable" | "timeout" | "overloaded" | "failed";

/** Nobody can tell who holds it. The request may have been carried out all the same. */
export type Unavailable = { kind: "unavailable"; reason: LockTrouble; detail?: string };

export type Lock = {
  /** Never waits for a holder. */
  acquire(key: string, ttlMs: number): Promise<Hold | HeldByOther | Unavailable>;
  /** Prolongs from now. `lost`: it ran out or was released, and may be somebody else's by now. */
  renew(hold: Hold, ttlMs: number): Promise<{ kind: "renewed"; endsAt: number } | { kind: "lost" } | Unavailable>;
  /** Frees it at once. `lost`: it was no longer ours, and nothing was changed. */
  release(hold: Hold): Promise<{ kind: "released" } | { kind: "lost" } | Unavailable>;
  /** For people and tests: the answer is old when it arrives. */
  holder(key: string): Promise<{ kind: "free" } | HeldByOther | Unavailable>;
  close(): Promise<void>;
};
