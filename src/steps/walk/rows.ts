// Requests as rows: judged one by one, stored together. Whose they are may differ from row to row.

import type { Decision } from "#domain/acceptance.ts";
import { bisect } from "#domain/bisect.ts";
import type { Handoff } from "#domain/handoff.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { isHigh, type Lanes, rankOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { stretchesOf } from "#domain/stretches.ts";
import { faultsOfRequest } from "#domain/validate.ts";
import { type Stored, type StoreOptions, storeAccepted } from "#record/accept.ts";
import { isOutage, isPassing, type Queryable, trying } from "#store/connection/database.ts";
import type { Accepting, Traces } from "#telemetry/traces/traces.ts";
import { HELD, type Kept } from "./apart.ts";

/** What a request needs to become a row. */
export type Numbering = {
  newId: () => string;
  now: () => Date;
  /** Only where an SDK for traces is loaded. */
  traces?: Traces | undefined;
};

/** The largest request that is stored, as JSON in UTF-8. */
export const MAX_REQUEST_BYTES = 262_144;

export type Row = {
  id: string;
  tenant: number;
  json: string;
  request: NotificationRequest;
  accepting: Accepting | undefined;
};

export function rowFor(tenant: number, value: unknown, { newId, traces }: Numbering, now: Date): Row | Problem {
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

export const keyOf = ({ tenant, request: { idempotencyKey } }: Row): string | undefined =>
  idempotencyKey === undefined ? undefined : `${tenant} ${idempotencyKey}`;

/** When the earliest of those that are not yet due will be. */
export function earliestDueMs(rows: readonly Row[]): number | undefined {
  let earliest: number | undefined;
  for (const { request } of rows) {
    if (request.scheduledFor === undefined) continue;
    const dueMs = Date.parse(request.scheduledFor);
    if (earliest === undefined || dueMs < earliest) earliest = dueMs;
  }
  return earliest;
}

const rankIn = ({ request }: Row): number => rankOf[request.priority ?? "normal"];

/** Of what lanes they are. */
export const lanesOf = (rows: readonly Row[]): Lanes => (rows.some((row) => isHigh(rankIn(row))) ? "any" : "lower");

const placeOf = (row: Row) => ({ tenant: row.tenant, id: row.id, rank: rankIn(row) });

export const storeRows = (db: Queryable, rows: readonly Row[], options?: StoreOptions): Promise<Stored> =>
  storeAccepted(
    db,
    rows.map(({ json }) => json),
    {
      hasKeys: rows.some(({ request }) => request.idempotencyKey !== undefined),
      hasRegions: rows.some(({ request }) => request.region !== undefined),
      hasCallbacks: rows.some(({ request }) => request.callbackUrl !== undefined),
    },
    { ...options, stretches: options?.engines && stretchesOf(rows.map(placeOf)) },
  );

/**
 * Within a transaction, in one statement for all; a row that PostgreSQL refuses is refused alone. Throws what may pass by itself. Only what is wrong
 * with a row is told: nobody waits for more.
 */
export function storeEach(
  tx: Queryable,
  rows: readonly Row[],
  options: StoreOptions,
  onHanded: (handed: readonly Handoff[]) => void,
): Promise<(Problem | undefined)[]> {
  return bisect<Row, Problem | undefined>(rows, {
    act: async (some) => {
      const stored = await trying(tx, () => storeRows(tx, some, options));
      if (stored instanceof Error) throw stored;
      onHanded(stored.handed);
      return some.map((row) => problemOf(row, stored));
    },
    isOutage: isForAll,
    refuse: refusalOf,
  });
}

/** A lock that is not a key's is in everybody's way alike: no row is to blame. */
export const isForAll = (error: unknown): boolean => isOutage(error) || isPassing(error);

export const refusalOf = (error: unknown): Problem =>
  new Problem("INTERNAL", "the database refused this notification", { cause: error });

function problemOf({ id, request }: Row, { replays, outside }: Stored): Problem | undefined {
  if (outside.has(id)) return invalid([{ path: "/region", message: "is new, and no more can be made now" }]);
  const replay = replays.get(id);
  if (!replay || replay.isSame) return undefined;
  const detail = `the idempotency key ${request.idempotencyKey} was used with another body`;
  return new Problem("IDEMPOTENCY_MISMATCH", detail);
}

export function decisionsOf(rows: readonly Row[], stored: Stored): Kept<Decision>[] {
  const { acceptedAt, replays, held } = stored;
  const enqueuedAt = acceptedAt.toISOString();
  return rows.map((row) => {
    const { id, request } = row;
    if (held.has(id)) return HELD;
    const problem = problemOf(row, stored);
    if (problem) return problem;
    const replay = replays.get(id);
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
