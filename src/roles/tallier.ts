// The tallier: counts what happened, some tenths of a second after it did.
//
// One process at a time does it, by a lease in the database, so that the others need not look; what is counted and how far it has come are one
// transaction, so two who think it theirs do no harm. Whoever is killed is missed within the lease.

import { createNap } from "#timing/nap.ts";

export type TallierOptions = {
  /** One round; undefined while another process is at it. */
  round: () => Promise<{ isAtEnd: boolean } | undefined>;
  /** Takes or keeps the lease for so long; undefined while somebody else has it. */
  lead: (ms: number) => Promise<number | undefined>;
  resign: () => Promise<void>;
  onFailure: (error: unknown) => void;
  monotonic: () => number;
};

export type RunningTallier = { stop(): Promise<void> };

const POLL_MS = 250;
const LEASE_MS = 3_000;
const RENEW_MS = 1_000;
const FAILED_MS = 1_000;

export function startTallier({ round, lead, resign, onFailure, monotonic }: TallierOptions): RunningTallier {
  const nap = createNap();
  let isStopping = false;
  let leadsUntil = Number.NEGATIVE_INFINITY;

  async function leads(): Promise<boolean> {
    const at = monotonic();
    if (at < leadsUntil - LEASE_MS + RENEW_MS) return true;
    leadsUntil = (await lead(LEASE_MS)) === undefined ? Number.NEGATIVE_INFINITY : at + LEASE_MS;
    return leadsUntil > at;
  }

  /** Answers with how long to rest. */
  async function work(): Promise<number> {
    try {
      if (!(await leads())) return RENEW_MS;
      const startedAt = monotonic();
      const done = await round();
      if (!done || done.isAtEnd) return POLL_MS;
      // With much to count, half of the time is others'.
      return Math.min(POLL_MS, monotonic() - startedAt);
    } catch (error) {
      onFailure(error);
      return FAILED_MS;
    }
  }

  const loop = (async () => {
    while (!isStopping) await nap.sleep(Math.max(1, await work()));
    // Whoever is next waits for the lease otherwise.
    await resign().catch(() => undefined);
  })();
  return {
    async stop() {
      isStopping = true;
      nap.wake();
      await loop;
    },
  };
}
