// Follows the feed and makes callbacks of it: reads on from its position, makes what somebody is to be told, and moves the position, all in one
// transaction. A crash repeats all of it or nothing, and of several processes one does it at a time: whoever finds it taken leaves it.
//
// What cannot be made fails alone, and the rest goes on.

import type pg from "pg";
import { bisect } from "#domain/bisect.ts";
import { acceptedRow, type NewCallback } from "#domain/callback.ts";
import { callbackAbout, DEFAULT_EVENTS, isTold, policyNamed, type Told } from "#domain/calls.ts";
import { REQUESTS } from "#domain/endpoint.ts";
import type { Fact, Position } from "#domain/fact.ts";
import { priorityOf } from "#domain/priority.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { lineUp } from "#queue/postgres/lines.ts";
import { storeAccepted } from "#record/accept.ts";
import { detailsOf, type FactDetail, findMarkers, followedTenants, type Marker } from "#record/callback-facts.ts";
import { readFeed } from "#record/feed.ts";
import { moveFollower, readFollower, skipFollower } from "#record/followers.ts";
import { inTransaction, isOutage, isPassing, type Queryable, readClock, trying } from "#store/connection/database.ts";
import { type EndpointRow, findEndpointsOf } from "#store/endpoints.ts";
import { lockAlone } from "#store/leadership.ts";
import { ensureRequestsEndpoint } from "#store/requests-endpoint.ts";
import type { CallbackFacts } from "#telemetry/callback-facts.ts";

export const FOLLOWER = "callbacks";

export type CallerWorld = {
  pool: pg.Pool;
  newId: () => string;
  secretKeys: SecretKeys;
  retentionDays: number;
  facts: Pick<CallbackFacts, "refused" | "missed">;
};

/** `lagMs`: how old the last is that was read, where more is left. */
export type Round = { made: number; isAtEnd: boolean; lagMs: number };

/** In one transaction. A fact may be told to fifty endpoints. */
const MOST_FACTS = 1_000;
const MOST_CALLBACKS = 2_000;
const DAY_MS = 86_400_000;

/** Undefined when another process is at it. */
export const makeCallbacks = (world: CallerWorld): Promise<Round | undefined> =>
  inTransaction(world.pool, async (tx) => ((await lockAlone(tx, FOLLOWER)) ? follow(tx, world) : undefined));

async function follow(tx: Queryable, world: CallerWorld): Promise<Round> {
  const after = await readFollower(tx, FOLLOWER);
  const page = await readPage(tx, after);
  if (page.kind === "reset") {
    world.facts.missed(page.reason);
    await skipFollower(tx, FOLLOWER, page.next);
    return { made: 0, isAtEnd: false, lagMs: 0 };
  }
  const { callbacks, next } = await callbacksAbout(tx, page.facts, page.next, world);
  const made = await store(tx, callbacks, world);
  await moveFollower(tx, FOLLOWER, next);
  const isAtEnd = page.isAtEnd && next === page.next;
  const last = page.facts.at(-1);
  const lagMs = isAtEnd || !last ? 0 : (await readClock(tx)).getTime() - last.at.getTime();
  return { made, isAtEnd, lagMs };
}

/** Whoever asked for the first time between two looks has perhaps something on the page that was read without it. */
async function readPage(tx: Queryable, after: Position): ReturnType<typeof readFeed> {
  for (let tenants = await followedTenants(tx); ; ) {
    const page = await readFeed(tx, { after, limit: MOST_FACTS, tenant: tenants });
    const known = tenants.length;
    tenants = await followedTenants(tx);
    if (tenants.length === known) return page;
  }
}

/** Of as many facts as make so many; the others are left for the next time. */
async function callbacksAbout(
  tx: Queryable,
  facts: readonly Fact[],
  end: Position,
  world: CallerWorld,
): Promise<{ callbacks: NewCallback[]; next: Position }> {
  const told = await whoIsTold(tx, facts, world);
  const wanted = facts.flatMap((fact) => {
    const to = told(fact);
    return to.length > 0 ? [{ fact, to }] : [];
  });
  const details = await detailsOf(
    tx,
    wanted.map(({ fact }) => fact),
  );
  const callbacks: NewCallback[] = [];
  for (const [n, { fact, to }] of wanted.entries()) {
    const detail = details[n];
    if (!detail) continue;
    const about = aboutOf(fact, detail);
    for (const one of to) callbacks.push(callbackAbout(fact, about, one, world.newId(), world.retentionDays * DAY_MS));
    if (callbacks.length >= MOST_CALLBACKS) return { callbacks, next: fact.position };
  }
  return { callbacks, next: end };
}

/** Endpoints by tenant, and what requests asked for. */
async function whoIsTold(
  tx: Queryable,
  facts: readonly Fact[],
  { secretKeys }: CallerWorld,
): Promise<(fact: Fact) => Told[]> {
  if (facts.length === 0) return () => [];
  const rows = await findEndpointsOf(tx, [...new Set(facts.map(({ tenant }) => tenant))]);
  const markers = await findMarkers(tx, [...new Set(facts.map(({ notificationId }) => notificationId))]);
  const byTenant = new Map<number, Told[]>();
  const requests = new Map<number, EndpointRow>();
  for (const row of rows) {
    if (row.id === REQUESTS) requests.set(row.tenant, row);
    else if (row.state !== "disabled") byTenant.set(row.tenant, [...(byTenant.get(row.tenant) ?? []), toldAt(row)]);
  }
  for (const { tenant, notificationId } of facts) {
    if (!markers.has(notificationId) || requests.has(tenant)) continue;
    requests.set(tenant, await ensureRequestsEndpoint(tx, secretKeys, tenant));
  }
  return (fact) => {
    const marker = markers.get(fact.notificationId);
    const asked = marker && askedBy(marker, requests.get(fact.tenant));
    const all = [...(byTenant.get(fact.tenant) ?? []), ...(asked ? [asked] : [])];
    return all.filter((one) => isTold(fact, one));
  };
}

const toldAt = ({ id, events, policy, fifo, createdAt }: EndpointRow): Told => ({
  endpoint: id,
  events,
  policy,
  fifo,
  since: createdAt,
});

/** Undefined where the tenant's own endpoint for requests is disabled. */
function askedBy({ url, policy, events }: Marker, row: EndpointRow | undefined): Told | undefined {
  if (row?.state === "disabled") return undefined;
  return {
    endpoint: REQUESTS,
    url,
    events: events ?? DEFAULT_EVENTS,
    policy: policyNamed(policy) ?? row?.policy ?? "best_effort",
    fifo: row?.fifo ?? null,
    since: new Date(0),
  };
}

function aboutOf({ notificationId, at }: Fact, detail: FactDetail) {
  const { channel, rank, userId, acceptedAt, status, attempt, provider, outcome, error } = detail;
  const { idempotencyKey, metadata, reminder, trace, traceparent, tracestate } = detail;
  const given = { userId, idempotencyKey, metadata, status, attempt, provider, outcome, error, reminder };
  const data = {
    notificationId,
    channel,
    priority: priorityOf(rank),
    acceptedAt: acceptedAt.toISOString(),
    ...known(given),
  };
  return { at: detail.at ?? at, acceptedAt, userId, data, context: known({ trace, traceparent, tracestate }) };
}

const known = (given: object) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));

/** Answers with how many were. What the database refuses is refused alone. */
async function store(tx: Queryable, callbacks: readonly NewCallback[], { facts }: CallerWorld): Promise<number> {
  if (callbacks.length === 0) return 0;
  const none = { hasKeys: false, hasRegions: false, hasCallbacks: false };
  const stored = await bisect<NewCallback, boolean>(callbacks, {
    async act(some) {
      const tried = await trying(tx, () => storeAccepted(tx, some.map(acceptedRow), none));
      if (tried instanceof Error) throw tried;
      return some.map(() => true);
    },
    isOutage: (error) => isOutage(error) || isPassing(error),
    refuse(error, { tenant, callback }) {
      facts.refused(tenant, callback.webhookId, error);
      return false;
    },
  });
  const made = callbacks.filter((_, n) => stored[n]);
  await lineUp(
    tx,
    made.flatMap(({ id, tenant, callback: { line } }) => (line === undefined ? [] : [{ line, tenant: -tenant, id }])),
  );
  return made.length;
}
