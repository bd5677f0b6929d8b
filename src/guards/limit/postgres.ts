// Limits in PostgreSQL: a row per key, one statement for all who ask at the same time.

import { burstOf, intervalMs, PERIODS, type Rate } from "#domain/gcra.ts";
import { rankOf } from "#domain/priority.ts";
import type { Queryable } from "#store/connection/database.ts";
import { delayLimit, type LimitAsk, readLimits, takeLimits } from "#store/limits.ts";
import { createGroupCommit } from "#timing/group-commit.ts";
import type { Demand, Limit, Standing, Taken } from "./limit.ts";

/** Every ask of a statement writes its keys' rows anew, so a statement must not become too long. */
const MOST_AT_ONCE = 100;

export function createPostgresLimit(db: Queryable): Limit {
  const shapes = new WeakMap<readonly Rate[], [number, number, number][]>();
  const shapeOf = (rates: readonly Rate[]) => {
    let shape = shapes.get(rates);
    if (!shape) {
      shape = rates.map((rate) => [PERIODS.indexOf(rate.per) + 1, intervalMs(rate), burstOf(rate)]);
      shapes.set(rates, shape);
    }
    return shape;
  };
  const commits = createGroupCommit<LimitAsk, Taken>({
    abreast: 1,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    isWaitingFailedToo: true,
    async commit(asks) {
      const taken: Taken[] = [];
      for (let n = 0; n < asks.length; n += MOST_AT_ONCE) {
        const answers = await takeLimits(db, asks.slice(n, n + MOST_AT_ONCE));
        for (const { isGranted, isFull, waitMs, key } of answers) {
          taken.push(isGranted ? { isGranted, isFull, afterMs: waitMs } : { isGranted, waitMs, key: key ?? "" });
        }
      }
      return taken;
    },
  });
  return {
    async take(demands: readonly Demand[], { seq, rank }: Standing, patienceMs: number): Promise<Taken> {
      const k = demands.map(({ key, rates, n }) => ({ k: key, n, l: shapeOf(rates) }));
      // There is a line for each priority; callbacks have their keys to themselves, and stand in the last.
      const taken = commits.submitOne({ q: seq, r: Math.min(rank, rankOf.low), p: patienceMs, k }, 0);
      if (!taken) throw new Error("too many wait for their limits");
      return taken;
    },
    delay: (key, ms) => delayLimit(db, key, ms),
    look: (keys) => readLimits(db, keys),
  } satisfies Limit;
}
