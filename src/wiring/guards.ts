// The guards of a worker, wired: limits in PostgreSQL, breakers that tell each other, figures, and the record's line.

import type { Config } from "#config/read.ts";
import type { Attempt, Postponed } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import { createGates, type GuardFact } from "#guards/gates.ts";
import type { Guard } from "#guards/guard.ts";
import { createPostgresLimit } from "#guards/limit/postgres.ts";
import type { Way } from "#guards/receivers.ts";
import type { PostponedNote, Queue } from "#queue/queue.ts";
import { leaseMarginMs } from "#roles/worker.ts";
import { forgetBreakers, readBreakers, tellBreaker, tellPause } from "#store/breakers.ts";
import { type Database, isOutage } from "#store/connection/database.ts";
import { forgetIdleLimits } from "#store/limits.ts";
import type { DeliveryMetrics } from "#telemetry/delivery-metrics.ts";
import type { Logger } from "#telemetry/log.ts";
import { createGroupCommit } from "#timing/group-commit.ts";
import type { Channels } from "./channels.ts";

export type Guards = {
  guard: Guard;
  notePostponed: (attempt: Attempt, postponed: Postponed) => Promise<void> | undefined;
  stop(): Promise<void>;
};

/** What another worker found out is known here after this long. */
const HINTS_MS = 1_000;
const FORGET_MS = 600_000;
const FORGET_BREAKERS_MS = 60_000;
/** So many facts about tenants' receivers wait to be told; more of them are left out, so that none waits behind a stranger's. */
const MOST_TOLD = 50;
/** Notifications whose waiting is in the record: when there are too many, the older half is looked up again. */
const MOST_NOTED = 20_000;

export function openGuards(
  { config, database, channels, log }: { config: Config; database: Database; channels: Channels; log: Logger },
  {
    worker,
    queue,
    figures,
    monotonic,
  }: { worker: number; queue: Pick<Queue, "notePostponed">; figures: DeliveryMetrics; monotonic: () => number },
): Guards {
  const db = database.own;
  const missed = (error: unknown) => log.debug({ err: error }, "the guards' hints were not exchanged");

  /** One after the other: on two connections the older change might come last. */
  let telling = Promise.resolve();
  let untold = 0;

  function share({ tenant }: Way, write: () => Promise<void>): void {
    if (tenant !== undefined && untold >= MOST_TOLD) return;
    untold++;
    telling = telling
      .then(write)
      .catch(missed)
      .finally(() => void untold--);
  }

  /** Which host a tenant writes to stays out of the log. */
  const named = ({ account }: Way): string => account.split(" ", 1).join();

  function tell(fact: GuardFact): void {
    switch (fact.kind) {
      case "limited":
        figures.limited.inc(fact.by);
        figures.limitWait.observe(fact.by, fact.waitMs / 1000);
        return;
      case "breaker": {
        const { account, tenant, view, reason } = fact;
        log.warn({ provider: named(fact), state: view.state, openMs: Math.round(view.openMs), reason }, "breaker");
        const change = { account, tenant, ...view, reason: reason ?? null, worker };
        share(fact, () => tellBreaker(db, change));
        return;
      }
      case "pause":
        log.warn({ provider: named(fact), ms: fact.ms }, "the provider asked for a pause");
        share(fact, () => tellPause(db, { ...fact, worker }));
    }
  }

  const gates = createGates({
    accountOf: channels.providers.accountOf,
    limits: config.limits,
    limit: createPostgresLimit(db),
    leaseMarginMs: leaseMarginMs(config.leaseMs),
    monotonic,
    random: Math.random,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    tell,
  });
  figures.watchBreakers(gates.states, gates.receivers);

  /** Changes already seen, so that an old hint does not speak twice. */
  let seen = new Map<string, number>();
  const hinting = setInterval(async () => {
    const rows = await readBreakers(db).catch(missed);
    if (!rows) return;
    const before = seen;
    seen = new Map();
    for (const { changedAt, tenant, ...row } of rows) {
      const isNews = before.get(row.account) !== changedAt && row.worker !== worker;
      const hint = { ...row, ...(tenant !== null && { tenant }), ...(!isNews && { state: "half-open" as const }) };
      if (gates.adopt(hint)) seen.set(row.account, changedAt);
    }
  }, HINTS_MS);
  const forgettingBreakers = setInterval(() => void forgetBreakers(db).catch(missed), FORGET_BREAKERS_MS);
  const forgetting = setInterval(() => void forgetIdleLimits(db).catch(missed), FORGET_MS);

  let noted = new Set<string>();
  let notedBefore = new Set<string>();
  const notes = createGroupCommit<PostponedNote, undefined>({
    lanes: 1,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    commit: (rows) =>
      bisect<PostponedNote, undefined>(rows, {
        act: async (some) => {
          await queue.notePostponed(worker, some);
          return some.map(() => undefined);
        },
        isOutage,
        refuse: (error, { attempt: { id } }) =>
          void log.warn({ err: error, notificationId: id }, "a postponement cannot be recorded"),
      }),
  });
  return {
    guard: gates,
    notePostponed(attempt, postponed) {
      const { id } = attempt;
      if (noted.has(id) || notedBefore.has(id)) return undefined;
      noted.add(id);
      if (noted.size > MOST_NOTED) {
        notedBefore = noted;
        noted = new Set();
      }
      // Only a line for people: that it waits is certain without it.
      return notes
        .submitOne({ attempt, postponed }, 0)
        ?.catch((error: unknown) => void log.debug({ err: error }, "a postponement is not in the record"));
    },
    async stop() {
      clearInterval(hinting);
      clearInterval(forgetting);
      clearInterval(forgettingBreakers);
      await telling;
    },
  };
}
