// Callbacks as their tenant sees them: what was posted where, how often, and what the receiver answered. In the record each is a notification
// of the tenant's number with a minus, whose user is the endpoint.

import type { Status } from "#domain/status.ts";
import type { Queryable } from "#store/connection/database.ts";
import { fitting } from "./page.ts";
import { bytesOf } from "./request-bytes.ts";

/** What is posted, of the request of a callback. */
export type Posted = {
  webhookId: string;
  endpoint: string;
  /** Where the endpoint has none of its own. */
  url?: string;
  type: string;
  timestamp: string;
  data: { [name: string]: unknown };
};
export type Delivery = {
  id: string;
  status: Status;
  acceptedAt: Date;
  callback: Posted;
  /** The last of them, in their order. */
  tries: Try[];
};
export type Try = {
  number: number;
  startedAt: string | null;
  endedAt: string;
  outcome: string | null;
  error: string | null;
  latencyMs: number | null;
  answer: { status: number; body: string } | null;
};
export type DeliveryFilter = { endpoint: string; status?: Status; since?: string; until?: string };
export type DeliveryPage = { deliveries: Delivery[]; nextId: string | undefined };

const MOST_TRIES = 20;
const TRIES = `(
  select coalesce(json_agg(json_build_object('number', e.attempt, 'startedAt', e.started_at, 'endedAt', e.at, 'outcome', e.outcome,
    'error', e.error, 'latencyMs', e.latency_ms, 'answer', e.detail -> 'answer') order by e.seq), '[]')
  from (select * from carillon.events e where e.notification_id = r.id and e.type = 'attempt' order by e.seq desc limit ${MOST_TRIES}) e
)`;

/** The newest first, from below `beforeId`. Of those with a rare status no more than `maxScanned` are looked at: then `nextId` says where to go on. */
export async function listDeliveries(
  db: Queryable,
  tenant: number,
  { endpoint, status, since, until }: DeliveryFilter,
  { beforeId, limit, maxScanned }: { beforeId: string | undefined; limit: number; maxScanned: number },
): Promise<DeliveryPage> {
  const values: unknown[] = [-tenant, endpoint];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const narrow = ["tenant = $1", "user_id = $2"];
  if (beforeId) narrow.push(`id < ${bind(beforeId)}`);
  // The id carries the clock of the process that made it, accepted_at the database's: a day of slack between them.
  if (since) narrow.push(`id >= carillon.first_id(${bind(since)}::timestamptz - interval '1 day')`);
  if (until) narrow.push(`id < carillon.first_id(${bind(until)}::timestamptz + interval '1 day')`);
  const keep = ["true"];
  if (status) keep.push(`r.status = ${bind(status)}`);
  if (since) keep.push(`r.accepted_at >= ${bind(since)}`);
  if (until) keep.push(`r.accepted_at < ${bind(until)}`);
  const { rows } = await db.query<Delivery & { scanned: number; last_id: string | null; found: number }>(
    `with scanned as materialized (
       select tenant, id from carillon.notifications where ${narrow.join(" and ")} order by id desc limit ${bind(maxScanned)}
     ), extent as (
       select count(*)::int as scanned, (select id from scanned order by id limit 1) as last_id from scanned
     ), found as materialized (
       select r.id, r.status, r.accepted_at as "acceptedAt", r.request -> 'callback' as callback, ${TRIES} as tries, ${bytesOf("r.request")} as bytes
       from scanned, lateral (
         select * from carillon.records r where r.tenant = scanned.tenant and r.id = scanned.id offset 0
       ) r where ${keep.join(" and ")} order by r.id desc limit ${bind(limit + 1)}
     )
     select page.*, extent.scanned, extent.last_id, (select count(*)::int from found) as found
     from extent left join ${fitting("found")} page on true order by page.id desc`,
    values,
  );
  const deliveries = rows.filter(({ id }) => id !== null).slice(0, limit);
  const { scanned = 0, last_id = null, found = 0 } = rows[0] ?? {};
  if (found > deliveries.length) return { deliveries, nextId: deliveries.at(-1)?.id };
  return { deliveries, nextId: scanned === maxScanned ? (last_id ?? undefined) : undefined };
}
