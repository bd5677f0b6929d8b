// Takes over what a crashed or frozen worker left behind.
//
// Whether its message went out nobody knows, so the attempt is ambiguous: the sender's policy decides between
// sending again and holding. The sweeper's new token shuts the old holder out.

import type { Ended } from "#domain/attempt.ts";
import { policyOf, type RetryPolicy, settlementFor } from "#domain/retry.ts";
import type { Queue } from "#queue/queue.ts";
import type { Facts } from "#telemetry/facts.ts";
import { settleEach } from "./settle.ts";

const REASON = "the worker's lease ran out before it settled";

/** Returns how many it took over; fewer than `count` means that there are no more. */
export async function sweep(options: {
  queue: Pick<Queue, "sweep" | "settle">;
  worker: number;
  count: number;
  leaseMs: number;
  retry: RetryPolicy;
  random: () => number;
  facts: Pick<Facts, "refused">;
}): Promise<number> {
  const { queue, worker, count, leaseMs, retry, random, facts } = options;
  const attempts = await queue.sweep(worker, count, leaseMs);
  if (attempts.length === 0) return 0;
  const batch = attempts.map((attempt): Ended => {
    const outcome = { kind: "ambiguous", reason: REASON } as const;
    return {
      attempt,
      settlement: settlementFor(attempt, outcome, policyOf(attempt, retry), random()),
      line: { outcome: "lost", error: REASON, worker: attempt.heldBy },
    };
  });
  await settleEach(batch, queue.settle, facts);
  return attempts.length;
}
