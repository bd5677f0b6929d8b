// Those who wait for something to be kept in their mailbox, in this process.
//
// Each looks for itself, when it is told that something was kept for its tenant and now and then besides, but not again and again while much is kept. So many of a tenant
// may wait, and so many in all. State: who waits.

import { Problem } from "#domain/problems.ts";

export type Waits = {
  /**
   * The first answer of `look` that is one, or undefined when time is up, the one who asked has gone, or the process ends. Throws the problem where too
   * many wait already.
   */
  wait<Found>(waiting: Waiting<Found>): Promise<Found | undefined>;
  /** Something was kept for these tenants; undefined: perhaps for anybody. */
  tell(tenants: readonly number[] | undefined): void;
  drain(): void;
};

export type Waiting<Found> = {
  tenant: number;
  forMs: number;
  gone: AbortSignal;
  look: () => Promise<Found | undefined>;
};

const PER_TENANT = 20;
const MOST = 500;
/** However much is kept, nobody looks more often; and whatever became of the hints, everybody looks as often as that. */
const LEAST_MS = 50;
const LOOK_MS = 2_000;

type Sleeper = { tenant: number; isWoken: boolean; rise: () => void };

export function createWaits(): Waits {
  const all = new Set<Sleeper>();
  let isDraining = false;

  /** Until woken, or for so long; but at least for a moment. */
  async function sleep(sleeper: Sleeper, endsAt: number, isOver: () => boolean): Promise<void> {
    const napFor = (ms: number, isAsleep: () => boolean) =>
      new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          sleeper.rise = () => undefined;
          resolve();
        };
        const timer = setTimeout(done, Math.max(0, Math.min(ms, endsAt - performance.now())));
        sleeper.rise = () => {
          if (!isAsleep()) done();
        };
        sleeper.rise();
      });
    await napFor(LEAST_MS, () => !isOver());
    await napFor(LOOK_MS - LEAST_MS, () => !isOver() && !sleeper.isWoken);
  }

  return {
    async wait({ tenant, forMs, gone, look }) {
      if ([...all].filter((one) => one.tenant === tenant).length >= PER_TENANT) {
        throw new Problem("TOO_MANY_REQUESTS", `no more than ${PER_TENANT} may wait at once`, { retryAfterSeconds: 1 });
      }
      if (all.size >= MOST) throw new Problem("OVERLOADED", "too many are waiting", { retryAfterSeconds: 5 });
      const sleeper: Sleeper = { tenant, isWoken: false, rise: () => undefined };
      const endsAt = performance.now() + forMs;
      const isOver = () => isDraining || gone.aborted || performance.now() >= endsAt;
      const leave = () => sleeper.rise();
      all.add(sleeper);
      gone.addEventListener("abort", leave);
      try {
        for (;;) {
          sleeper.isWoken = false;
          const found = await look();
          if (found !== undefined || isOver()) return found;
          await sleep(sleeper, endsAt, isOver);
          if (isDraining || gone.aborted) return undefined;
        }
      } finally {
        gone.removeEventListener("abort", leave);
        all.delete(sleeper);
      }
    },
    tell(tenants) {
      for (const sleeper of all) {
        if (tenants && !tenants.includes(sleeper.tenant)) continue;
        sleeper.isWoken = true;
        sleeper.rise();
      }
    },
    drain() {
      isDraining = true;
      for (const sleeper of all) sleeper.rise();
    },
  };
}
