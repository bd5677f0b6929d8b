// The first step: a request becomes a notification, or is refused with every fault named.
//
// All doors end here. Concurrent callers share commits: with fifty in flight that is several times
// the throughput of a commit each (docs/performance.md).

import type { Acceptance, Decision } from "#domain/acceptance.ts";
import { bisect } from "#domain/bisect.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { rankOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { faultsOfRequest } from "#domain/validate.ts";
import { type Stored, storeAccepted } from "#record/accept.ts";
import { isOutage, isPassing, type Queryable, trying } from "#store/connection/database.ts";
import type { Accepting, Traces } from "#telemetry/traces/traces.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";
import { createApart, HELD, type Kept } from "./apart.ts";

export type AcceptancesOptions = {
  db: Queryable;
  newId: () => string;
  now: () => Date;
  /** Commits under way at once. */
  abreast: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
  /** Only where an SDK for traces is loaded. */
  traces?: Traces | undefined;
  onCommit?: (commit: Commit) => void;
  /** The database could not or would not store what was sent. */
  onOutage?: () => void;
};
/** `nextDueMs` is when the earliest of those that are not yet due will be. */
export type Commit = { rows: number; seconds: number; nextDueMs: number | undefined };

/** What a request needs to become a row. */
type Numbering = Pick<AcceptancesOptions, "newId" | "now" | "traces">;

/** The largest request that is stored, as JSON in UTF-8. */
export const MAX_REQUEST_BYTES = 262_144;

type Row = {
  id: string;
  tenant: number;
  json: string;
  request: NotificationRequest;
  accepting: Accepting | undefined;
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
  readonly traces: Traces | undefined;
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
    const { db, onCommit, onOutage, maxWaitingRows, maxWaitingBytes } = this.#options;
    return createGroupCommit<Row, Kept<Decision>>({
      maxWaitingRows,
      maxWaitingBytes,
      abreast,
      ownerOf: ({ tenant }) => tenant,
      isWaitingFailedToo: true,
      commit: async (rows) => {
        const startedAt = performance.now();
        const decisions = await store(db, rows, patienceMs).catch((error: unknown) => {
          onOutage?.();
          throw error;
        });
        onCommit?.({
          rows: rows.length,
          seconds: (performance.now() - startedAt) / 1000,
          nextDueMs: earliestDueMs(rows),
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

function earliestDueMs(rows: readonly Row[]): number | undefined {
  let earliest: number | undefined;
  for (const { request } of rows) {
    if (request.scheduledFor === undefined) continue;
    const dueMs = Date.parse(request.scheduledFor);
    if (earliest === undefined || dueMs < earliest) earliest = dueMs;
  }
  return earliest;
}

function rowFor(tenant: number, value: unknown, { newId, traces }: Numbering, now: Date): Row | Problem {
  const faults = faultsOfRequest(value, now);
  if (faults.length > 0) return invalid(faults);
  const request = value as NotificationRequest;
  const body = JSON.stringify(request);
  // A UTF-16 unit takes at most three bytes in UTF-8: count only where it could matter.
  if (body.length * 3 > MAX_REQUEST_BYTES && Buffer.byteLength(body) > MAX_REQUEST_BYTES) {
    return new Problem("PAYLOAD_TOO_LARGE", `a notification has at most ${MAX_REQUEST_BYTES} bytes of JSON`);
  }
  const id = newId();
  const { recipient, region, scheduledFor, expiresAt, idempotencyKey } = request;
  // By hand, because this is half of what Node does for a notification. What people wrote is escaped; ids, channels, regions and
  // instants have passed the contract's patterns and need no escape.
  let json = `{"i":"${id}","t":${tenant},"c":"${request.channel}","p":${rankOf[request.priority ?? "normal"]}`;
  if (recipient?.userId !== undefined) json += `,"u":${JSON.stringify(recipient.userId)}`;
  if (region !== undefined) json += `,"g":"${region}"`;
  if (scheduledFor !== undefined) json += `,"d":"${scheduledFor}"`;
  if (expiresAt !== undefined) json += `,"e":"${expiresAt}"`;
  if (idempotencyKey !== undefined) json += `,"k":${JSON.stringify(idempotencyKey)}`;
  const accepting = traces?.accepting(tenant, id, request);
  json += accepting ? `,"r":{"trace":"${accepting.trace}",${body.slice(1)}}` : `,"r":${body}}`;
  return { id, tenant, json, request, accepting };
}

const keyOf = ({ tenant, request: { idempotencyKey } }: Row): string | undefined =>
  idempotencyKey === undefined ? undefined : `${tenant} ${idempotencyKey}`;

const storeRows = (db: Queryable, rows: readonly Row[], patienceMs?: number): Promise<Stored> =>
  storeAccepted(
    db,
    rows.map(({ json }) => json),
    {
      hasKeys: rows.some(({ request }) => request.idempotencyKey !== undefined),
      hasRegions: rows.some(({ request }) => request.region !== undefined),
      hasCallbacks: rows.some(({ request }) => request.callbackUrl !== undefined),
    },
    patienceMs,
  );

/** A lock that is not a key's is in everybody's way alike: no row is to blame. */
const isForAll = (error: unknown): boolean => isOutage(error) || isPassing(error);

const refusalOf = (error: unknown): Problem =>
  new Problem("INTERNAL", "the database refused this notification", { cause: error });

/** One commit for all; a row that PostgreSQL refuses is refused alone. */
async function store(db: Queryable, rows: readonly Row[], patienceMs: number): Promise<Kept<Decision>[]> {
  try {
    return await bisect<Row, Kept<Decision>>(rows, {
      act: async (some) => decisionsOf(some, await storeRows(db, some, patienceMs)),
      isOutage: isForAll,
      refuse: refusalOf,
    });
  } catch (error) {
    if (!isForAll(error)) throw error;
    const detail = "whether the notification was stored is not known; send it again with an idempotency key";
    throw new Problem("DATABASE_UNAVAILABLE", detail, { retryAfterSeconds: 1, cause: error });
  }
}

function decisionsOf(rows: readonly Row[], { acceptedAt, replays, held, outside }: Stored): Kept<Decision>[] {
  const enqueuedAt = acceptedAt.toISOString();
  return rows.map(({ id, request }) => {
    if (held.has(id)) return HELD;
    if (outside.has(id)) return invalid([{ path: "/region", message: "is new, and no more can be made now" }]);
    const replay = replays.get(id);
    if (replay && !replay.isSame) {
      const detail = `the idempotency key ${request.idempotencyKey} was used with another body`;
      return new Problem("IDEMPOTENCY_MISMATCH", detail);
    }
    const dueAt = request.scheduledFor === undefined ? undefined : new Date(request.scheduledFor);
    return {
      notificationId: replay?.id ?? id,
      status: replay?.status ?? (dueAt && dueAt > acceptedAt ? "pending" : "queued"),
      channel: request.channel,
      priority: request.priority ?? "normal",
      enqueuedAt: replay?.acceptedAt.toISOString() ?? enqueuedAt,
      ...(dueAt && { scheduledFor: dueAt.toISOString(), estimatedDeliveryAt: dueAt.toISOString() }),
      isReplay: replay !== undefined,
    };
  });
}
