// What workers tell each other of providers and receivers, through the database: whose breaker has opened, who asked for a
// pause. They are hints: who misses one finds out for itself.
//
// State: what is still to be told, and the changes already heard of, so that an old one does not speak twice.

import { forgetBreakers, readBreakers, tellBreaker, tellPause } from "#store/breakers.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Hint } from "./gate-book.ts";
import type { GuardFact } from "./gates.ts";
import type { Way } from "./receivers.ts";

export type Exchange = {
  /** Tells the others, soon. */
  tell(fact: GuardFact): void;
  /** From now on hears what they tell. `adopt` says whether it concerns anybody here. */
  hear(adopt: (hint: Hint) => boolean): void;
  stop(): Promise<void>;
};

/** What another worker found out is known here after this long. */
const HINTS_MS = 1_000;
const FORGET_MS = 60_000;
/** So many facts about tenants' receivers wait to be told; more of them are left out, so that none waits behind a stranger's. */
const MOST_TOLD = 50;

export function createExchange(db: Queryable, worker: number, onMissed: (error: unknown) => void): Exchange {
  /** One after the other: on two connections the older change might come last. */
  let telling = Promise.resolve();
  let untold = 0;
  let seen = new Map<string, number>();
  let hearing: NodeJS.Timeout | undefined;
  const forgetting = setInterval(() => void forgetBreakers(db).catch(onMissed), FORGET_MS);

  function share({ tenant }: Way, write: () => Promise<void>): void {
    if (tenant !== undefined && untold >= MOST_TOLD) return;
    untold++;
    telling = telling
      .then(write)
      .catch(onMissed)
      .finally(() => void untold--);
  }

  return {
    tell(fact) {
      if (fact.kind === "breaker") {
        const { account, tenant, view, reason } = fact;
        const change = { account, tenant, ...view, reason: reason ?? null, worker };
        share(fact, () => tellBreaker(db, change));
      } else if (fact.kind === "pause") share(fact, () => tellPause(db, { ...fact, worker }));
    },
    hear(adopt) {
      hearing = setInterval(async () => {
        const rows = await readBreakers(db).catch(onMissed);
        if (!rows) return;
        const before = seen;
        seen = new Map();
        for (const { changedAt, tenant, ...row } of rows) {
          const isNews = before.get(row.account) !== changedAt && row.worker !== worker;
          const hint = { ...row, ...(tenant !== null && { tenant }), ...(!isNews && { state: "half-open" as const }) };
          if (adopt(hint)) seen.set(row.account, changedAt);
        }
      }, HINTS_MS);
    },
    async stop() {
      clearInterval(hearing);
      clearInterval(forgetting);
      await telling;
    },
  };
}
