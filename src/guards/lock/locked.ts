// A delivery under its lock, for channels whose outside limits all replicas share.
//
// The queue's lease already gives a notification to one worker at a time; the lock is a second protection, for providers
// where a duplicate is dear. It is never the reason that something is not delivered: where the lock cannot be had because
// the other side fails, the delivery goes on under the queue's lease alone, and is counted. A lock held by another means
// that the other is delivering; the caller hands the attempt back unspent, so nothing is lost if that other dies.
//
// It is asked for last, when the breaker and the limits have let the delivery through: what has to wait for them would only
// write a lock and delete it again, each time it looks.
//
// State: until when not to ask again, when the trouble was last told, and the releases under way.

import { type HeldByOther, type Hold, LOCK_RENEW_MS, LOCK_TTL_MS, type Lock, type LockTrouble } from "./lock.ts";

/** `lost`: it was acquired, and was somebody else's before the delivery ended. */
export type LockFailure = LockTrouble | "lost";

export type LockedOptions = {
  lock: Lock;
  /** Those that need it; all others go straight on. */
  channels: readonly string[];
  ttlMs?: number;
  renewMs?: number;
  /** How long a delivery waits for its lock. */
  patienceMs?: number;
  /** For how long nobody asks again after a failure, so that an outage does not cost every delivery its patience. */
  restMs?: number;
  tellEveryMs?: number;
  monotonic: () => number;
  /** Every delivery that went on without its lock, or lost it. */
  onFailure: (channel: string, reason: LockFailure) => void;
  /** How long it took to be told whether it is ours. */
  onAsked: (channel: string, seconds: number) => void;
  /** At most once in `tellEveryMs`, with the failures since the last time. For the log. */
  onTrouble: (trouble: { reason: LockFailure; detail?: string; failures: number }) => void;
};

/** One delivery's lock. */
export type Door = {
  /** Undefined: go on, with the lock or, where nobody can tell, without. Asked once, however often it is entered. */
  enter(): Promise<HeldByOther | undefined>;
  /** Once, when the delivery is over. Frees what was had. */
  leave(): void;
};

export type Locked = {
  /** Whether a channel is locked at all. */
  covers(channel: string): boolean;
  /** Nothing is asked before somebody enters. */
  door(channel: string, key: string): Door;
  /** Waits for the releases under way, no longer than one delivery waits for its lock. */
  close(): Promise<void>;
};

type Without = { kind: "without"; asked?: ReturnType<Lock["acquire"]> };

/** The last bucket of the metric: a lock that takes longer is no use. */
const PATIENCE_MS = 1_000;
const REST_MS = 1_000;
const TELL_EVERY_MS = 60_000;

export function createLocked(options: LockedOptions): Locked {
  const { lock, monotonic, onFailure, onAsked, onTrouble } = options;
  const { ttlMs = LOCK_TTL_MS, renewMs = LOCK_RENEW_MS, patienceMs = PATIENCE_MS } = options;
  const { restMs = REST_MS, tellEveryMs = TELL_EVERY_MS } = options;
  const channels = new Set(options.channels);
  let resting: { until: number; reason: LockTrouble } | undefined;
  let toldAt = Number.NEGATIVE_INFINITY;
  let untold = 0;
  /** Nobody waits for these but `close`. */
  const releasing = new Set<Promise<unknown>>();

  /** If it fails, the lock runs out by itself. */
  function release(hold: Hold, when: Promise<void> = Promise.resolve()): void {
    const released = when
      .then(() => lock.release(hold))
      .catch(() => undefined)
      .finally(() => releasing.delete(released));
    releasing.add(released);
  }

  function fail(channel: string, reason: LockFailure, detail?: string): void {
    onFailure(channel, reason);
    untold++;
    if (monotonic() - toldAt < tellEveryMs) return;
    toldAt = monotonic();
    onTrouble({ reason, ...(detail !== undefined && { detail }), failures: untold });
    untold = 0;
  }

  /** `without`: the delivery goes on all the same. An answer may come yet. */
  async function acquire(channel: string, key: string): Promise<Hold | HeldByOther | Without> {
    const askedAt = monotonic();
    if (resting && askedAt < resting.until) {
      fail(channel, resting.reason);
      return { kind: "without" };
    }
    const asked = lock.acquire(key, ttlMs);
    const answer = await within(patienceMs, asked);
    onAsked(channel, (monotonic() - askedAt) / 1000);
    if (answer !== "late" && answer.kind !== "unavailable") return answer;
    const { reason, detail } = answer === "late" ? { reason: "timeout" as const, detail: undefined } : answer;
    resting = { until: monotonic() + restMs, reason };
    fail(channel, reason, detail);
    return { kind: "without", ...(answer === "late" && { asked }) };
  }

  return {
    covers: (channel) => channels.has(channel),
    door(channel, key) {
      let entered: Promise<HeldByOther | undefined> | undefined;
      let leave = () => {};
      const enter = async () => {
        const answer = await acquire(channel, key);
        switch (answer.kind) {
          case "held":
            return answer;
          case "acquired": {
            const stop = keep(lock, answer, {
              ttlMs,
              renewMs,
              onTrouble: (reason, detail) => fail(channel, reason, detail),
            });
            leave = () => release(answer, stop());
            return undefined;
          }
          case "without":
            // A lock that comes late still keeps others away while we deliver, and is then freed like any other.
            leave = () => {
              answer.asked?.then((late) => late.kind === "acquired" && release(late)).catch(() => undefined);
            };
            return undefined;
        }
      };
      return {
        enter() {
          entered ??= enter();
          return entered;
        },
        leave: () => leave(),
      };
    },
    async close() {
      await within(patienceMs, Promise.all(releasing));
      await lock.close();
    },
  };
}

async function within<Value>(ms: number, asked: Promise<Value>): Promise<Value | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), ms);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

type Keeping = { ttlMs: number; renewMs: number; onTrouble: (reason: LockFailure, detail?: string) => void };

/** Renews until told to stop; then resolves when no renewal is under way. */
function keep(lock: Lock, hold: Hold, { ttlMs, renewMs, onTrouble }: Keeping): () => Promise<void> {
  let renewing = Promise.resolve();
  let isRenewing = false;
  const timer = setInterval(() => {
    // A renewal that hangs is not overtaken by the next.
    if (isRenewing) return;
    isRenewing = true;
    renewing = lock.renew(hold, ttlMs).then(
      (answer) => {
        isRenewing = false;
        if (answer.kind === "renewed") return;
        // One that failed is tried again: two may, before the lock runs out.
        if (answer.kind === "unavailable") return onTrouble(answer.reason, answer.detail);
        clearInterval(timer);
        onTrouble("lost");
      },
      () => undefined,
    );
  }, renewMs);
  return () => {
    clearInterval(timer);
    return renewing;
  };
}
