// From facts to the callbacks about them: who is told, and what the record says.
//
// Requests carry what their senders put into them, up to 256 KiB, and fifty endpoints may each have a copy: so much is made at once, by count
// and by bytes, and the rest is left for the next time.

import type { NewCallback } from "#domain/callback.ts";
import { callbackAbout, DEFAULT_EVENTS, isTold, policyNamed, type Told } from "#domain/calls.ts";
import { REQUESTS } from "#domain/endpoint.ts";
import type { Fact, Position } from "#domain/fact.ts";
import { priorityOf } from "#domain/priority.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { detailsOf, type FactDetail, findMarkers, type Marker } from "#record/callback-facts.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type EndpointRow, findEndpointsOf } from "#store/endpoints.ts";
import { ensureRequestsEndpoint } from "#store/requests-endpoint.ts";

export type Making = { newId: () => string; retentionDays: number };
/** To whom a fact is told. */
export type Audience = (fact: Fact) => Told[];

const MOST_CALLBACKS = 2_000;
const MOST_BYTES = 16 * 1024 * 1024;
const DAY_MS = 86_400_000;

/** Of as many facts as make so many; `next` is `end` where these are all. */
export async function callbacksAbout(
  tx: Queryable,
  facts: readonly Fact[],
  end: Position,
  audience: Audience,
  { newId, retentionDays }: Making,
): Promise<{ callbacks: NewCallback[]; next: Position }> {
  const wanted = facts.flatMap((fact) => {
    const to = audience(fact);
    return to.length > 0 ? [{ fact, to }] : [];
  });
  const details = await detailsOf(
    tx,
    wanted.map(({ fact }) => fact),
    MOST_BYTES,
  );
  const callbacks: NewCallback[] = [];
  let bytes = 0;
  for (const [n, { detail, size }] of details.entries()) {
    const { fact, to } = wanted[n] as (typeof wanted)[number];
    const about = detail && aboutOf(fact, detail);
    if (about) for (const one of to) callbacks.push(callbackAbout(fact, about, one, newId(), retentionDays * DAY_MS));
    bytes += size * to.length;
    const isFull = callbacks.length >= MOST_CALLBACKS || bytes >= MOST_BYTES || n === details.length - 1;
    if (isFull && n < wanted.length - 1) return { callbacks, next: fact.position };
  }
  return { callbacks, next: end };
}

/** Endpoints by tenant, and what requests asked for. */
export async function everybody(tx: Queryable, facts: readonly Fact[], secretKeys: SecretKeys): Promise<Audience> {
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
    const row = requests.get(fact.tenant);
    const asked = marker && row && row.state !== "disabled" ? [askedBy(marker, row)] : [];
    return [...(byTenant.get(fact.tenant) ?? []), ...asked].filter((one) => isTold(fact, one));
  };
}

/** One endpoint alone, also of what happened before it was made. */
export async function onlyAt(tx: Queryable, facts: readonly Fact[], row: EndpointRow): Promise<Audience> {
  const always = { since: new Date(0) };
  if (row.id !== REQUESTS) return (fact) => [{ ...toldAt(row), ...always }].filter((one) => isTold(fact, one));
  const markers = await findMarkers(tx, [...new Set(facts.map(({ notificationId }) => notificationId))]);
  return (fact) => {
    const marker = markers.get(fact.notificationId);
    return marker ? [askedBy(marker, row)].filter((one) => isTold(fact, one)) : [];
  };
}

const toldAt = ({ id, events, policy, fifo, createdAt }: EndpointRow): Told => ({
  endpoint: id,
  events,
  policy,
  fifo,
  since: createdAt,
});

const askedBy = ({ url, policy, events }: Marker, row: EndpointRow): Told => ({
  endpoint: REQUESTS,
  url,
  events: events ?? DEFAULT_EVENTS,
  policy: policyNamed(policy) ?? row.policy,
  fifo: row.fifo,
  since: new Date(0),
});

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
