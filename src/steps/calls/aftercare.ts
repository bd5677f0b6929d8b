// What follows from a callback that was settled: the next of its line has its turn, its endpoint fares well or badly, and where one answers
// again those that were put off for its silence go now.
//
// Nothing of it is needed for the callback itself, and all of it is found out later where it is not written: a crash loses nothing.
// State: of each endpoint when that was last written, and what is under way.

import { callbackOf } from "#domain/callback.ts";
import { REQUESTS } from "#domain/endpoint.ts";
import { advance, hurry } from "#queue/postgres/lines.ts";
import type { Settled } from "#steps/walk/settle.ts";
import type { Queryable } from "#store/connection/database.ts";
import { noteFailure, noteSuccess } from "#store/endpoint-health.ts";
import type { CallbackFacts } from "#telemetry/callback-facts.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";

export type AftercareOptions = {
  db: Queryable;
  monotonic: () => number;
  facts: Pick<CallbackFacts, "unnoted">;
  disable: (tenant: number, endpoint: string, reason: string) => Promise<void>;
  /** Something may be claimed. */
  wake: () => void;
};

type Care = { wroteAt: number; isWell: boolean | undefined; isBusy: boolean };

/** Without a success; then it is disabled. */
const MOST_DAYS = 5;
/** That it goes on as before is written no more often. */
const NOTED_MS = 10_000;
const MOST_HURRIED = 1_000;
/** With those that are just being looked after; the others are forgotten. */
const MOST_KNOWN = 10_000;

export class Aftercare {
  readonly #options: AftercareOptions;
  readonly #lines: GroupCommit<string, undefined>;
  readonly #cares = new Map<string, Care>();

  constructor(options: AftercareOptions) {
    this.#options = options;
    this.#lines = createGroupCommit({
      abreast: 1,
      maxWaitingRows: Number.POSITIVE_INFINITY,
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      commit: async (lines) => {
        await advance(options.db, [...new Set(lines)]);
        options.wake();
        return lines.map(() => undefined);
      },
    });
  }

  /** Never throws; what it begins goes on by itself. */
  settled({ attempt, settlement, line }: Settled): void {
    const callback = callbackOf(attempt.request);
    if (!callback || !line) return;
    const isOver = settlement.to !== "pending" && settlement.to !== "queued";
    if (isOver && callback.line !== undefined)
      void this.#lines.submitOne(callback.line, 0)?.catch((error: unknown) => this.#options.facts.unnoted(error));
    const { endpoint } = callback;
    const tenant = -attempt.tenant;
    // A request names its own URL: that it is gone says nothing about others'.
    if (line.outcome === "dead-recipient" && endpoint !== REQUESTS)
      void this.#care(tenant, endpoint, () => this.#options.disable(tenant, endpoint, "the receiver answered 410"));
    else if (line.outcome === "accepted") this.#note(tenant, endpoint, true);
    else if (line.latencyMs !== undefined && line.provider !== undefined) this.#note(tenant, endpoint, false);
  }

  #note(tenant: number, endpoint: string, isWell: boolean): void {
    const { monotonic } = this.#options;
    const care = this.#careOf(tenant, endpoint);
    if (care.isBusy || (care.isWell === isWell && monotonic() - care.wroteAt < NOTED_MS)) return;
    care.isWell = isWell;
    care.wroteAt = monotonic();
    void this.#care(tenant, endpoint, () => (isWell ? this.#well(tenant, endpoint) : this.#badly(tenant, endpoint)));
  }

  async #well(tenant: number, endpoint: string): Promise<void> {
    const { db, wake } = this.#options;
    await noteSuccess(db, tenant, endpoint);
    for (let hurried = MOST_HURRIED; hurried === MOST_HURRIED; ) {
      hurried = await hurry(db, tenant, endpoint, MOST_HURRIED);
      if (hurried > 0) wake();
    }
  }

  async #badly(tenant: number, endpoint: string): Promise<void> {
    const { db, disable } = this.#options;
    if (await noteFailure(db, tenant, endpoint, MOST_DAYS))
      await disable(tenant, endpoint, `nothing succeeded for ${MOST_DAYS} days`);
  }

  async #care(tenant: number, endpoint: string, act: () => Promise<void>): Promise<void> {
    const care = this.#careOf(tenant, endpoint);
    care.isBusy = true;
    try {
      await act();
    } catch (error) {
      care.isWell = undefined;
      this.#options.facts.unnoted(error);
    } finally {
      care.isBusy = false;
    }
  }

  #careOf(tenant: number, endpoint: string): Care {
    const key = `${tenant} ${endpoint}`;
    const known = this.#cares.get(key);
    if (known) return known;
    if (this.#cares.size >= MOST_KNOWN)
      for (const [one, { isBusy }] of this.#cares) if (!isBusy) this.#cares.delete(one);
    const care = { wroteAt: Number.NEGATIVE_INFINITY, isWell: undefined, isBusy: false };
    this.#cares.set(key, care);
    return care;
  }
}
