// Facts become metrics and log lines here, and only here but for the access log of HTTP: whoever comes upon one says what happened, and
// this file says how it is counted and worded. Recipients and contents never get this far.

import type { Attempt, Ended, Outcome } from "#domain/attempt.ts";
import { CALLBACK_RANK, priorityOf } from "#domain/priority.ts";
import type { GuardFact } from "#guards/gates.ts";
import type { Way } from "#guards/receivers.ts";
import type { DeliveryMetrics } from "./delivery-metrics.ts";
import type { Logger } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { named } from "./named.ts";

const MOST_NAMED = 10;

export class Facts {
  readonly #log: Logger;
  /** A library inside somebody's application has no figures to show. */
  readonly #metrics: Metrics | undefined;
  readonly #figures: DeliveryMetrics | undefined;

  constructor(log: Logger, metrics?: Metrics, figures?: DeliveryMetrics) {
    this.#log = log;
    this.#metrics = metrics;
    this.#figures = figures;
  }

  // The database.

  embeddedSaid(message: string, details: object = {}): void {
    this.#log.info(details, message);
  }

  awaited(error: unknown): void {
    this.#log.warn({ err: error }, "waiting for the database");
  }

  migrated(applied: readonly string[]): void {
    this.#log.info({ applied }, "migrated the database");
  }

  connectionBroke(error: unknown): void {
    this.#log.warn({ err: error }, "a connection to the database broke");
  }

  leaderMoved(host: string): void {
    this.#log.warn({ host }, "another server leads the database now");
  }

  clockStrayed(aheadMs: number, isAstray: boolean): void {
    if (isAstray) this.#log.warn({ aheadMs }, "this machine's clock is not the database's, which decides");
    else this.#log.info({ aheadMs }, "this machine's clock is the database's again");
  }

  listenerLost(listener: "listen" | "stream" | "mailbox", error: unknown): void {
    this.#log.warn({ listener, err: error }, "lost a connection for hints; until there is a new one they are missed");
    this.#metrics?.listenersLost.inc({ listener });
  }

  heartbeatMissed(error: unknown): void {
    this.#log.debug({ err: error }, "no heartbeat");
  }

  // Acceptance.

  committed(rows: number, seconds: number): void {
    this.#metrics?.acceptRows.observe(rows);
    this.#metrics?.acceptDuration.observe(seconds);
  }

  loginFailed(): void {
    this.#metrics?.failedLogins.inc();
  }

  usesUnwritten(error: unknown): void {
    this.#log.debug({ err: error }, "last uses of keys not written");
  }

  acknowledgementFailed(error: unknown): void {
    this.#log.warn({ err: error }, "what a reader has was not marked");
  }

  // Streams of inboxes.

  streamsBeganAnew(): void {
    this.#log.warn({}, "the database is older than it was: all streams begin anew");
  }

  newsUnread(error: unknown): void {
    this.#log.warn({ err: error }, "could not look for what is new in inboxes");
  }

  // The queue.

  figuresUnread(error: unknown): void {
    this.#log.warn({ err: error }, "the queue's figures could not be read");
  }

  /** In the queue and not in the record. */
  gone(ids: readonly string[]): void {
    this.#figures?.gone.inc(ids.length);
    this.#log.error(
      { notificationIds: ids.slice(0, MOST_NAMED), count: ids.length },
      "in the queue but not in the record: let go",
    );
  }

  // The keeper and the scheduler.

  leads(term: number): void {
    this.#log.info({ term }, "leads the keepers");
  }

  swept(leases: number): void {
    this.#figures?.leasesSwept.inc(leases);
    this.#log.warn({ swept: leases }, "took over expired leases");
  }

  roundFailed(error: unknown): void {
    this.#log.warn({ err: error }, "the keeper's round failed");
  }

  choreKept({ name, level }: { name: string; level: "debug" | "info" }, count: number, seconds: number): void {
    const chore = { chore: name };
    this.#figures?.chores.duration.observe(chore, seconds);
    this.#figures?.chores.rows.inc(chore, count);
    this.#figures?.chores.succeededAt.setToCurrentTime(chore);
    if (count > 0) this.#log[level]({ ...chore, count }, "kept house");
  }

  choreFailed({ name }: { name: string }, error: unknown): void {
    this.#figures?.chores.failures.inc({ chore: name });
    this.#log.warn({ err: error, chore: name }, "a chore of the keeper failed");
  }

  timedFailed(source: string, error: unknown): void {
    this.#log.warn({ err: error, source }, "could not do what is due");
  }

  // A worker and its attempts.

  claimFailed(error: unknown): void {
    this.#log.warn({ err: error }, "could not claim");
  }

  unprepared(error: unknown): void {
    this.#log.warn({ err: error }, "could not look at a claim; it is handed back");
  }

  unextended(held: number, error: unknown): void {
    this.#log.warn({ err: error, held }, "could not extend leases");
  }

  unsettled(attempt: Attempt, error: unknown): void {
    this.#log.error({ err: error, ...named(attempt) }, "an attempt could not be settled; its lease will run out");
  }

  leftToLeases(held: number): void {
    this.#log.warn({ held }, "did not end in time: left to their leases");
  }

  /** Nothing has left yet: an attempt that ended here without a word would be taken for one that may have been sent. */
  unread(error: unknown): void {
    this.#log.warn({ err: error }, "what a send needs cannot be read");
  }

  doubtsUnread(attempt: Attempt, error: unknown): void {
    this.#log.warn(
      { err: error, ...named(attempt) },
      "whether it may have been sent before cannot be read: it is held",
    );
  }

  deviceUnmarked(error: unknown): void {
    this.#log.warn({ err: error }, "a dead device could not be marked as such");
  }

  /** What an attempt came to cannot be written as it is. */
  refused({ attempt, settlement }: Ended, error: unknown): void {
    this.#log.error(
      { err: error, ...named(attempt), to: settlement.to },
      "the database refuses what an attempt came to",
    );
  }

  leaseLost({ attempt }: Ended, outcome: Outcome["kind"]): void {
    this.#figures?.leasesLost.inc();
    this.#log.warn({ ...named(attempt), outcome }, "lease lost, nothing settled");
  }

  /** A claim that was handed back or postponed leaves no line in the record, and none here. */
  settled({ attempt, settlement, line }: Ended, now: number): void {
    if (!line) return;
    const { outcome, provider, latencyMs } = line;
    const { channel } = attempt.request;
    const figures = this.#figures;
    if (attempt.rank === CALLBACK_RANK) figures?.callbacks.delivered.inc({ success: String(settlement.to === "sent") });
    else if (figures) {
      const priority = priorityOf(attempt.rank);
      const ending =
        settlement.to === "sent" ? figures.sent : settlement.to === "pending" ? figures.retried : figures.failed;
      ending.inc(channel, priority, outcome);
      if (attempt.number === 1) {
        figures.queueWait.observe(priority, Math.max(0, attempt.lease.claimedAtMs - attempt.sinceMs) / 1000);
      }
      if (provider !== undefined && latencyMs !== undefined) figures.provider.observe(provider, latencyMs / 1000);
      figures.processing.observe(channel, (now - attempt.lease.claimedAt) / 1000);
    }
    if (settlement.to === "sent") return;
    this.#log.info({ ...named(attempt), outcome, reason: line.error, to: settlement.to }, "attempt");
  }

  // The guards.

  guarded(fact: GuardFact): void {
    switch (fact.kind) {
      case "limited":
        this.#figures?.limited.inc(fact.by);
        this.#figures?.limitWait.observe(fact.by, fact.waitMs / 1000);
        return;
      case "breaker": {
        const { state, openMs } = fact.view;
        const { reason } = fact;
        this.#log.warn({ provider: nameOf(fact), state, openMs: Math.round(openMs), reason }, "breaker");
        return;
      }
      case "pause":
        this.#log.warn({ provider: nameOf(fact), ms: fact.ms }, "the provider asked for a pause");
    }
  }

  guardHintsMissed(error: unknown): void {
    this.#log.debug({ err: error }, "the guards' hints were not exchanged");
  }

  pausesUnread(error: unknown): void {
    this.#log.warn({ err: error }, "what is paused could not be read; what was read last stands");
  }

  postponementRefused(attempt: Attempt, error: unknown): void {
    this.#log.warn({ err: error, ...named(attempt) }, "a postponement cannot be recorded");
  }

  heldSinceUnread(attempt: Attempt, error: unknown): void {
    this.#log.warn({ err: error, ...named(attempt) }, "since when it has been held cannot be read: it goes on waiting");
  }

  postponementUnwritten(error: unknown): void {
    this.#log.debug({ err: error }, "a postponement is not in the record");
  }

  // The processes behind one port, told by their supervisor.

  processServes({ number, pid }: { number: number; pid: number | undefined }): void {
    this.#log.info({ number, pid }, "a process serves");
  }

  processEnded({ number, pid }: { number: number; pid: number | undefined }, how: string, pauseMs: number): void {
    this.#log.error({ number, pid, how, pauseMs }, "a process ended and is replaced");
  }

  processHangs({ number, pid }: { number: number; pid: number | undefined }): void {
    this.#log.error({ number, pid }, "a process does not answer any more and is ended");
  }

  // Accounts, locks, and what comes by itself.

  accountDisabled(account: { tenant: number; provider: string; reason: string }): void {
    this.#log.error(account, "a tenant's own account is disabled: its sends fail");
  }

  accountsUnread(error: unknown): void {
    this.#log.debug({ err: error }, "accounts of tenants not read");
  }

  weightsUnread(error: unknown): void {
    this.#log.debug({ err: error }, "weights of tenants not read");
  }

  locksAway(error: unknown): void {
    this.#log.warn({ err: error }, "locks cannot be had yet");
  }

  locking(locks: string, channels: readonly string[], first: unknown): void {
    this.#log.info({ locks, channels, first }, "deliveries are locked");
  }

  lockTrouble(trouble: { reason: string; detail?: string; failures: number }): void {
    this.#log.warn(trouble, "deliveries go on without their locks");
  }

  unfired(what: { tenant: number; name: string }, error: unknown): void {
    this.#log.error({ err: error, ...what }, "could not be fired, and is put off");
  }
}

/** Which host a tenant writes to stays out of the log. */
const nameOf = ({ account }: Way): string => account.split(" ", 1).join();
