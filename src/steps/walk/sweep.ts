// Takes over what a crashed or frozen worker left behind.
//
// Whether its message went out nobody knows, so the attempt is ambiguous: the sender's policy decides between
// sending again and holding. The sweeper's new token shuts the old holder out. A notification on which worker after worker is lost
// is not sent again without end: how often it may have been is counted first, and where that cannot be read nothing is settled,
// so that the next sweep finds it.

import type { Ended } from "#domain/attempt.ts";
import { dependsOnDoubts, settlementFor } from "#domain/retry.ts";
import { policyOf, type RetryPolicies } from "#domain/retry-policy.ts";
import type { Queue } from "#queue/queue.ts";
import { countDoubts } from "#record/doubts.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import { settleEach } from "./settle.ts";

const REASON = "the worker's lease ran out before it settled";
const LOST = { kind: "ambiguous", reason: REASON } as const;

/** Returns how many it took over; fewer than `count` means that there are no more. */
export async function sweep(options: {
  db: Queryable;
  queue: Pick<Queue, "sweep" | "settle">;
  worker: number;
  count: number;
  leaseMs: number;
  retry: RetryPolicies;
  random: () => number;
  facts: Pick<Facts, "refused">;
}): Promise<number> {
  const { db, queue, worker, count, leaseMs, retry, random, facts } = options;
  const attempts = await queue.sweep(worker, count, leaseMs);
  if (attempts.length === 0) return 0;
  const lost = attempts.map((attempt) => ({ attempt, policy: policyOf(attempt, retry) }));
  const doubtful = lost.filter(({ attempt, policy }) => dependsOnDoubts(attempt, LOST, policy));
  const doubts = await countDoubts(
    db,
    doubtful.map(({ attempt }) => attempt.id),
  );
  const batch = lost.map(
    ({ attempt, policy }): Ended => ({
      attempt,
      settlement: settlementFor(attempt, LOST, policy, random(), doubts.get(attempt.id) ?? 0),
      line: { outcome: "lost", error: REASON, worker: attempt.heldBy },
    }),
  );
  await settleEach(batch, queue.settle, facts);
  return attempts.length;
}
