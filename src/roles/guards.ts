// The guards of a worker, wired: limits in PostgreSQL, breakers that tell each other, figures, and the record's line.

import type { Config } from "../config.ts";
import type { Attempt, Postponed } from "../domain/attempt.ts";
import { createGroupCommit } from "../domain/group-commit.ts";
import { createGates, type GuardFact } from "../guards/gates.ts";
import type { Guard } from "../guards/guard.ts";
import { createPostgresLimit } from "../guards/limit-postgres.ts";
import { readBreakers, tellBreaker, tellPause } from "../store/breakers.ts";
import type { Database } from "../store/database.ts";
import { forgetIdleLimits } from "../store/limits.ts";
import { type PostponedRow, recordPostponed } from "../store/postponed.ts";
import type { DeliveryMetrics } from "../telemetry/delivery-metrics.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Channels } from "./channels.ts";
import { leaseMarginMs } from "./worker.ts";

export type Guards = {
  guard: Guard;
  notePostponed: (attempt: Attempt, postponed: Postponed) => Promise<void> | undefined;
  stop(): Promise<void>;
};

/** What another worker found out is known here after this long. */
const HINTS_MS = 1_000;
const FORGET_MS = 600_000;
/** Notifications whose waiting is in the record: when there are too many, the older half is looked up again. */
const MOST_NOTED = 20_000;

export function openGuards(
  { config, database, channels, log }: { config: Config; database: Database; channels: Channels; log: Logger },
  { worker, figures, monotonic }: { worker: number; figures: DeliveryMetrics; monotonic: () => number },
): Guards {
  const db = database.own;
  const missed = (error: unknown) => log.debug({ err: error }, "the guards' hints were not exchanged");

  /** One after the other: on two connections the older change might come last. */
  let telling = Promise.resolve();

  function tell(fact: GuardFact): void {
    switch (fact.kind) {
      case "limited":
        figures.limited.inc(fact.by);
        figures.limitWait.observe(fact.by, fact.waitMs / 1000);
        return;
      case "breaker": {
        const { account, view, reason } = fact;
        log.warn({ provider: account, state: view.state, openMs: Math.round(view.openMs), reason }, "breaker");
        const change = { account, ...view, reason: reason ?? null, worker };
        telling = telling.then(() => tellBreaker(db, change)).catch(missed);
        return;
      }
      case "pause":
        log.warn({ provider: fact.account, ms: fact.ms }, "the provider asked for a pause");
        tellPause(db, fact.account, fact.ms, worker).catch(missed);
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
  figures.watchBreakers(gates.states);

  /** Changes already seen, so that an old hint does not speak twice. */
  const seen = new Map<string, number>();
  const hinting = setInterval(async () => {
    const rows = await readBreakers(db).catch(missed);
    for (const { changedAt, ...row } of rows ?? []) {
      const isNews = seen.get(row.account) !== changedAt && row.worker !== worker;
      if (gates.adopt(isNews ? row : { ...row, state: "half-open" })) seen.set(row.account, changedAt);
    }
  }, HINTS_MS);
  const forgetting = setInterval(() => void forgetIdleLimits(db).catch(missed), FORGET_MS);

  let noted = new Set<string>();
  let notedBefore = new Set<string>();
  const notes = createGroupCommit<PostponedRow, undefined>({
    lanes: 1,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    commit: (rows) => recordPostponed(database.work, rows).then(() => rows.map(() => undefined)),
  });
  return {
    guard: gates,
    notePostponed({ id, place, tenant, number, lease: { token } }, { reason, waitMs }) {
      if (noted.has(id) || notedBefore.has(id)) return undefined;
      noted.add(id);
      if (noted.size > MOST_NOTED) {
        notedBefore = noted;
        noted = new Set();
      }
      // Only a line for people: that it waits is certain without it.
      return notes
        .submitOne({ id, token, place, tenant, attempt: number, worker, reason, waitMs }, 0)
        ?.catch((error: unknown) => void log.debug({ err: error }, "a postponement is not in the record"));
    },
    async stop() {
      clearInterval(hinting);
      clearInterval(forgetting);
      await telling;
    },
  };
}
