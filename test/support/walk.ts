// A world to walk through without a database: nobody stands in the way and nothing is known, unless a test says so.

import { type Claimed, type Ended, leaseMarginMs } from "#domain/attempt.ts";
import { retryPolicies } from "#domain/retry-policy.ts";
import { NO_GUARD } from "#guards/guard.ts";
import { Postponements } from "#steps/walk/postpone.ts";
import type { Result } from "#steps/walk/send.ts";
import { createSettlements } from "#steps/walk/settle.ts";
import { Suppressions } from "#steps/walk/suppress.ts";
import type { World } from "#steps/walk/world.ts";
import type { Queryable } from "#store/connection/database.ts";
import { Facts } from "#telemetry/facts.ts";
import { createLog } from "#telemetry/log.ts";
import { createSingleflight } from "#timing/singleflight.ts";

export const silent = new Facts(createLog("silent"));

/** Answers every statement with rows. */
export function answering(answer: (text: string) => Promise<unknown[]>): Queryable {
  const query = async (asked: string | { text: string }) => ({
    rows: await answer(typeof asked === "string" ? asked : asked.text),
  });
  // A pool's query is many functions in one.
  return { query } as unknown as Queryable;
}

const NOTHING = answering(async () => []);

/** Whatever is settled is kept in `settled`, and held unless a test says otherwise. */
export function worldWith(
  settled: Ended[],
  given: Partial<World>,
  isHeld: (ended: Ended) => boolean = () => true,
): World {
  const { monotonic = () => performance.now(), db = NOTHING } = given;
  return {
    db,
    suppressions: new Suppressions(db, monotonic),
    providers: { route: () => [] },
    templates: { render: async (_tenant, request) => ({ request }) },
    guard: NO_GUARD,
    pauses: { isPaused: () => false },
    flights: createSingleflight<Result>(),
    postponements: new Postponements(db, { notePostponed: async () => undefined }, 1, silent),
    settlements: createSettlements({
      queue: {
        settle: async (batch) => {
          settled.push(...batch);
          return batch.map(isHeld);
        },
      },
      abreast: 2,
      patienceMs: 1_000,
      monotonic,
      sleep: () => Promise.reject(new Error("nothing is settled twice here")),
      facts: silent,
    }),
    retry: retryPolicies(),
    exchanges: "failures",
    leaseMarginMs: leaseMarginMs(30_000),
    hints: { due: () => undefined },
    facts: silent,
    monotonic,
    random: () => 0,
    ...given,
  };
}

/** The first of its claim, unless a test says otherwise. */
export const claimedWith = (given: Partial<Claimed> & Pick<Claimed, "lease">): Claimed => ({
  seq: 1,
  handle: 0,
  tenant: 1,
  id: "n",
  rank: 2,
  number: 1,
  request: { channel: "console", content: { body: "b" } },
  sinceMs: 0,
  expiresAtMs: undefined,
  ...given,
});
