// The first step: a request becomes a notification, or is refused with every fault named.
//
// All doors end here. Concurrent callers share commits: with fifty in flight that is several times
// the throughput of a commit each (docs/performance.md).

import type { Acceptance, Decision } from "#domain/acceptance.ts";
import { bisect } from "#domain/bisect.ts";
import type { EngineName, Handoff } from "#domain/handoff.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Lanes } from "#domain/priority.ts";
import { Problem } from "#domain/problems.ts";
import type { StoreOptions } from "#record/accept.ts";
import { type Queryable, trying } from "#store/connection/database.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";
import { createApart, type Kept } from "./apart.ts";
import {
  decisionsOf,
  earliestDueMs,
  isForAll,
  keyOf,
  lanesOf,
  type Numbering,
  type Row,
  refusalOf,
  rowFor,
  storeRows,
} from "./rows.ts";

export type AcceptancesOptions = Numbering & {
  db: Queryable;
  /** Commits under way at once. */
  abreast: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
  /** Those to which onCommit() hands over. */
  engines?: readonly EngineName[];
  onCommit?: (commit: Commit) => void;
  /** The database could not or would not store what was sent. */
  onOutage?: () => void;
};
/** `nextDueMs` is when the earliest of those that are not yet due will be. `handed` is what engines are to be offered. */
export type Commit = {
  rows: number;
  seconds: number;
  nextDueMs: number | undefined;
  lanes: Lanes;
  handed: readonly Handoff[];
};

/** How long a commit waits for a key that an open transaction holds, first when shared with others, then apart. */
const SHARED_PATIENCE_MS = 20;
const APART_PATIENCE_MS = 500;

/** One decision per request, in order. Rejects only when all of them fail alike, as in an outage. */
export async function accept(
  tenant: number,
  requests: readonly unknown[],
  acceptances: Acceptances,
): Promise<Decision[]> {
  acceptances.assertOpen();
  return judge(tenant, requests, acceptances, (rows) => acceptances.keep(rows));
}

/** The same inside the caller's own transaction: nothing is shared, nothing is kept if it rolls back. */
export function acceptWithin(
  tx: Queryable,
  tenant: number,
  requests: readonly unknown[],
  numbering: Numbering,
): Promise<Decision[]> {
  // Without a patience of ours nothing is left out.
  return judge(tenant, requests, numbering, async (rows) => decisionsOf(rows, await storeRows(tx, rows)) as Decision[]);
}

export type AcceptWithin = (tx: Queryable, tenant: number, requests: readonly unknown[]) => Promise<Decision[]>;

export const createAcceptWithin =
  (numbering: Numbering): AcceptWithin =>
  (tx, tenant, requests) =>
    acceptWithin(tx, tenant, requests, numbering);

/** The commits that requests share on their way into the record. */
export class Acceptances {
  readonly newId: () => string;
  readonly now: () => Date;
  readonly traces: Numbering["traces"];
  readonly #options: AcceptancesOptions;
  readonly #shared: GroupCommit<Row, Kept<Decision>>;
  readonly #apart: GroupCommit<Row, Kept<Decision>>;
  readonly #keep: (rows: Row[]) => Promise<Decision[]> | undefined;
  #isClosed = false;

  constructor(options: AcceptancesOptions) {
    this.#options = options;
    this.newId = options.newId;
    this.now = options.now;
    this.traces = options.traces;
    this.#shared = this.#committing(options.abreast, SHARED_PATIENCE_MS);
    this.#apart = this.#committing(1, APART_PATIENCE_MS);
    const [shared, apart] = [this.#shared, this.#apart];
    this.#keep = createApart<Row, Decision>({ shared, apart, bytesOf: ({ json }) => json.length, keyOf });
  }

  waitingRows(): number {
    return this.#shared.waitingRows() + this.#apart.waitingRows();
  }

  assertOpen(): void {
    if (!this.#isClosed) return;
    throw new Problem("SHUTTING_DOWN", "ask another replica, or again soon", { retryAfterSeconds: 1 });
  }

  /** Throws when too many of the tenant's wait already. */
  keep(rows: Row[]): Promise<Decision[]> {
    const answer = this.#keep(rows);
    if (answer) return answer;
    const detail = `${this.waitingRows()} notifications are waiting to be stored`;
    throw new Problem("OVERLOADED", detail, { retryAfterSeconds: 1 });
  }

  /** Refuses what comes now and resolves when all that came before is answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#shared.idle();
    await this.#apart.idle();
  }

  #committing(abreast: number, patienceMs: number): GroupCommit<Row, Kept<Decision>> {
    const { db, onCommit, onOutage, maxWaitingRows, maxWaitingBytes, engines } = this.#options;
    return createGroupCommit<Row, Kept<Decision>>({
      maxWaitingRows,
      maxWaitingBytes,
      abreast,
      ownerOf: ({ tenant }) => tenant,
      isWaitingFailedToo: true,
      commit: async (rows) => {
        const startedAt = performance.now();
        const handed: Handoff[] = [];
        const keep = (some: readonly Handoff[]) => void handed.push(...some);
        const decisions = await store(db, rows, { patienceMs, engines }, keep).catch((error: unknown) => {
          onOutage?.();
          throw error;
        });
        onCommit?.({
          rows: rows.length,
          seconds: (performance.now() - startedAt) / 1000,
          nextDueMs: earliestDueMs(rows),
          lanes: lanesOf(rows),
          handed,
        });
        return decisions;
      },
    });
  }
}

/** As `acceptWithin`, but what PostgreSQL refuses is refused alone. Throws what may pass by itself. */
export function acceptEach(
  tx: Queryable,
  acceptWithin: AcceptWithin,
  tenant: number,
  requests: readonly NotificationRequest[],
): Promise<Decision[]> {
  return bisect<NotificationRequest, Decision>(requests, {
    act: async (some) => {
      const decisions = await trying(tx, () => acceptWithin(tx, tenant, some));
      if (decisions instanceof Error) throw decisions;
      return decisions;
    },
    isOutage: isForAll,
    refuse: refusalOf,
  });
}

async function judge(
  tenant: number,
  requests: readonly unknown[],
  numbering: Numbering,
  keep: (rows: Row[]) => Promise<Decision[]>,
): Promise<Decision[]> {
  const { traces } = numbering;
  const at = numbering.now();
  const judged = requests.map((request) => rowFor(tenant, request, numbering, at));
  const rows = judged.filter((row): row is Row => !(row instanceof Problem));
  const keeping = rows.length === 0 ? [] : traces ? traces.accepted(rows, () => keep(rows)) : keep(rows);
  const kept = (await keeping).values();
  return judged.map((row) => (row instanceof Problem ? row : (kept.next().value as Decision)));
}

/** What was accepted, and the first thing that was not. */
export function summaryOf(decisions: readonly Decision[]): { notifications: string[]; error: string | null } {
  const accepted = decisions.filter((one): one is Acceptance => !(one instanceof Problem));
  const refused = decisions.find((one): one is Problem => one instanceof Problem);
  return { notifications: accepted.map(({ notificationId }) => notificationId), error: refused?.message ?? null };
}

/** One commit for all; a row that PostgreSQL refuses is refused alone. */
async function store(
  db: Queryable,
  rows: readonly Row[],
  options: StoreOptions,
  onHanded: (handed: readonly Handoff[]) => void,
): Promise<Kept<Decision>[]> {
  try {
    return await bisect<Row, Kept<Decision>>(rows, {
      act: async (some) => {
        const stored = await storeRows(db, some, options);
        onHanded(stored.handed);
        return decisionsOf(some, stored);
      },
      isOutage: isForAll,
      refuse: refusalOf,
    });
  } catch (error) {
    if (!isForAll(error)) throw error;
    const detail = "whether the notification was stored is not known; send it again with an idempotency key";
    throw new Problem("DATABASE_UNAVAILABLE", detail, { retryAfterSeconds: 1, cause: error });
  }
}
