// Settles attempts in shared commits: many at once under load, one at once when idle.
//
// A settlement that cannot be written is tried again for a while: it may be the only place that knows that a
// message was sent. If it stays unwritten, the lease runs out and the sweep finds the attempt.
//
// One that PostgreSQL refuses, for what a provider said, must not fail those it shares a commit with: all of them would be
// sent again. It is searched for, and written without what was said.

import type { Ended } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import type { Queue } from "#queue/queue.ts";
import { isOutage, isPassing } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import type { Traces } from "#telemetry/traces/traces.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";

/** Never there: it keeps everybody else from making one. */
declare const wasWritten: unique symbol;

/** The last stage of the walk: it is in the record. */
export type Settled = Ended & { readonly [wasWritten]: true };

/** The commits that settlements share. */
export type Settlements = GroupCommit<Ended, Settled | undefined>;

export type SettlementsOptions = {
  queue: Pick<Queue, "settle">;
  /** Commits under way at once. */
  abreast: number;
  /** How long to try. */
  patienceMs: number;
  monotonic: () => number;
  sleep: (ms: number) => Promise<void>;
  facts: Refusals;
  traces?: Traces | undefined;
};

/** Told of each that was refused; it was then written without words, unless that was refused too. */
type Refusals = Pick<Facts, "refused">;

const RETRY_MS = 200;
/** In place of what cannot be written. */
export const UNSAID = "what was said cannot be written";
const MOST_WAIT_MS = 86_400_000;

/** Undefined when the lease was lost: nothing was written, and whoever holds it now will. */
export function settle(ended: Ended, settlements: Settlements): Promise<Settled | undefined> {
  // The worker bounds what is under way, so nothing is ever refused here.
  return settlements.submitOne(ended, 0) ?? Promise.reject(new Error("a settlement was refused"));
}

export function createSettlements(options: SettlementsOptions): Settlements {
  const { queue, abreast, patienceMs, monotonic, sleep, facts, traces } = options;

  async function commit(batch: Ended[]): Promise<(Settled | undefined)[]> {
    const deadline = monotonic() + patienceMs;
    const patiently = async (some: readonly Ended[]): Promise<boolean[]> => {
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
    const writing = settleEach(batch, patiently, facts);
    const answers = await (traces?.settlingTogether(batch, writing) ?? writing);
    return answers.map((isHeld, n) => (isHeld ? written(batch[n]) : undefined));
  }

  return createGroupCommit<Ended, Settled | undefined>({
    abreast,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    commit,
  });
}

/** The only place where what has ended becomes settled. */
const written = (ended: Ended | undefined) => ended as Settled | undefined;

/** It says nothing about what is to be written. */
const isElsewhere = (error: unknown): boolean => isOutage(error) || isPassing(error);

/** One answer each, in order: false where nothing was written. Rejects only in an outage. */
export async function settleEach(
  batch: readonly Ended[],
  settle: (some: readonly Ended[]) => Promise<boolean[]>,
  facts: Refusals,
): Promise<boolean[]> {
  const refused: Ended[] = [];
  const refuse = (error: unknown, ended: Ended): boolean => {
    facts.refused(ended, error);
    refused.push(ended);
    return false;
  };
  const answers = await bisect(batch, { act: settle, isOutage: isElsewhere, refuse });
  if (refused.length === 0) return answers;
  const unsaid = await bisect(refused.map(withoutWords), {
    act: settle,
    isOutage: isElsewhere,
    refuse: (error, ended) => {
      facts.refused(ended, error);
      return false;
    },
  });
  for (const [n, ended] of refused.entries()) answers[batch.indexOf(ended)] = unsaid[n] ?? false;
  return answers;
}

/** How it ended, and on which devices; nothing else that anybody but us has said. */
function withoutWords({ attempt, settlement, line }: Ended): Ended {
  const told: Ended = { attempt, settlement };
  if (settlement.to === "pending") {
    const { waitMs } = settlement;
    // A wait that is no number, or past the end of the calendar, is somebody's word too.
    told.settlement = { ...settlement, waitMs: waitMs >= 0 && waitMs <= MOST_WAIT_MS ? waitMs : MOST_WAIT_MS };
  }
  if (!line) return told;
  const { outcome, provider, worker } = line;
  told.line = { outcome, error: UNSAID };
  if (provider !== undefined) told.line.provider = provider;
  if (worker !== undefined) told.line.worker = worker;
  if (Array.isArray(line.detail?.devices)) {
    told.line.detail = {
      devices: line.detail.devices.map(({ token, outcome: came, provider: by }) => ({
        token,
        outcome: came,
        provider: by,
      })),
    };
  }
  return told;
}
