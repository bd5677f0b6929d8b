// Settles attempts in shared commits: many at once under load, one at once when idle.
//
// A settlement that cannot be written is tried again for a while: it may be the only place that knows that a
// message was sent. If it stays unwritten, the lease runs out and the sweep finds the attempt.
//
// One that PostgreSQL refuses, for what a provider said, must not fail those it shares a commit with: all of them would be
// sent again. It is searched for, and written without what was said.

import { bisect } from "#domain/bisect.ts";
import type { Queue, Settled } from "#queue/queue.ts";
import { isOutage, isPassing } from "#store/connection/database.ts";
import { createGroupCommit } from "#timing/group-commit.ts";

export type Settle = {
  settle(settled: Settled): Promise<boolean>;
  idle(): Promise<void>;
};

/** Told of each that was refused; it was then written without words, unless that was refused too. */
export type OnRefused = (settled: Settled, error: unknown) => void;

const RETRY_MS = 200;
/** In place of what cannot be written. */
export const UNSAID = "what was said cannot be written";
const MOST_WAIT_MS = 86_400_000;

export function createSettle(options: {
  queue: Pick<Queue, "settle">;
  /** Commits under way at once. */
  abreast: number;
  /** How long to try. */
  patienceMs: number;
  monotonic: () => number;
  sleep: (ms: number) => Promise<void>;
  onRefused: OnRefused;
}): Settle {
  const { queue, abreast, patienceMs, monotonic, sleep, onRefused } = options;

  async function commit(batch: Settled[]): Promise<boolean[]> {
    const deadline = monotonic() + patienceMs;
    const patiently = async (some: readonly Settled[]): Promise<boolean[]> => {
      for (;;) {
        try {
          return await queue.settle(some);
        } catch (error) {
          if (!isElsewhere(error) || monotonic() >= deadline) throw error;
          // A commit whose answer was lost has happened or not: settling again tells, by what is still held.
          await sleep(RETRY_MS);
        }
      }
    };
    return settleEach(batch, patiently, onRefused);
  }

  const commits = createGroupCommit<Settled, boolean>({
    abreast,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    commit,
  });
  return {
    settle(settled) {
      // The worker bounds what is under way, so nothing is ever refused here.
      return commits.submitOne(settled, 0) ?? Promise.reject(new Error("a settlement was refused"));
    },
    idle: commits.idle,
  };
}

/** It says nothing about what is to be written. */
const isElsewhere = (error: unknown): boolean => isOutage(error) || isPassing(error);

/** One answer each, in order: false where nothing was written. Rejects only in an outage. */
export async function settleEach(
  batch: readonly Settled[],
  settle: (some: readonly Settled[]) => Promise<boolean[]>,
  onRefused: OnRefused,
): Promise<boolean[]> {
  const refused: Settled[] = [];
  const refuse = (error: unknown, settled: Settled): boolean => {
    onRefused(settled, error);
    refused.push(settled);
    return false;
  };
  const answers = await bisect(batch, { act: settle, isOutage: isElsewhere, refuse });
  if (refused.length === 0) return answers;
  const unsaid = await bisect(refused.map(withoutWords), {
    act: settle,
    isOutage: isElsewhere,
    refuse: (error, settled) => {
      onRefused(settled, error);
      return false;
    },
  });
  for (const [n, settled] of refused.entries()) answers[batch.indexOf(settled)] = unsaid[n] ?? false;
  return answers;
}

/** How it ended, and on which devices; nothing else that anybody but us has said. */
function withoutWords({ attempt, settlement, account }: Settled): Settled {
  const told: Settled = { attempt, settlement };
  if (settlement.to === "pending") {
    const { waitMs } = settlement;
    // A wait that is no number, or past the end of the calendar, is somebody's word too.
    told.settlement = { ...settlement, waitMs: waitMs >= 0 && waitMs <= MOST_WAIT_MS ? waitMs : MOST_WAIT_MS };
  }
  if (!account) return told;
  const { outcome, provider, worker } = account;
  told.account = { outcome, error: UNSAID };
  if (provider !== undefined) told.account.provider = provider;
  if (worker !== undefined) told.account.worker = worker;
  if (Array.isArray(account.detail?.devices)) {
    told.account.detail = {
      devices: account.detail.devices.map(({ token, outcome: came, provider: by }) => ({
        token,
        outcome: came,
        provider: by,
      })),
    };
  }
  return told;
}
