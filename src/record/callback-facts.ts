// What callbacks need of facts besides the feed: who asked for them, and what they tell.

import type { Fact } from "#domain/fact.ts";
import type { Channel } from "#domain/notification.ts";
import type { TraceContext } from "#domain/trace-context.ts";
import type { Queryable } from "#store/connection/database.ts";
import { bytesOf } from "./request-bytes.ts";

/** That a request asked to be called back. What it leaves out is null. */
export type Marker = { id: string; url: string; policy: string | null; events: string[] | null };

export async function findMarkers(db: Queryable, ids: readonly string[]): Promise<Map<string, Marker>> {
  const { rows } = await db.query<Marker>({
    name: "carillon-markers",
    text: "select id, url, policy, events from carillon.callback_markers where id = any ($1::uuid[])",
    values: [ids],
  });
  return new Map(rows.map((marker) => [marker.id, marker]));
}

/** Tenants that have an endpoint, or a request of which asked to be called back, once. */
export async function followedTenants(db: Queryable): Promise<number[]> {
  const { rows } = await db.query<{ ids: number[] }>({
    name: "carillon-followed",
    text: "select array(select distinct tenant from carillon.callers) as ids",
  });
  return rows[0]?.ids ?? [];
}

export type FactDetail = {
  channel: Channel;
  rank: number;
  userId: string | null;
  acceptedAt: Date;
  metadata: unknown;
  idempotencyKey: string | null;
  at: Date | null;
  status: string | null;
  attempt: number | null;
  provider: string | null;
  outcome: string | null;
  error: string | null;
  reminder: unknown;
} & { [part in keyof TraceContext]: string | null };

const DETAILS = `
  with sized as materialized (
    select f.*, coalesce(n.bytes, 0) as size, sum(n.bytes) over (order by f.nth rows between unbounded preceding and 1 preceding) as before
    from unnest($1::integer[], $2::uuid[], $3::bigint[]) with ordinality as f(tenant, id, number, nth)
    left join lateral (
      select ${bytesOf("n.request")} as bytes from carillon.notifications n where n.tenant = f.tenant and n.id = f.id limit 1
    ) n on true
  )
  select f.size::float8 as size, n.channel, n.priority as rank, n.user_id as "userId", n.accepted_at as "acceptedAt", r.*, e.at, e.to_status as status,
    e.attempt, e.provider, e.outcome, e.error,
    case when e.type = 'reminder.due' then e.detail end as reminder
  from (select * from sized where coalesce(before, 0) < $4::bigint) f
  left join lateral (select * from carillon.notifications n where n.tenant = f.tenant and n.id = f.id limit 1) n on true
  left join lateral json_to_record(n.request) as r(metadata json, "idempotencyKey" text, trace text, traceparent text, tracestate text) on true
  left join lateral (select * from carillon.events e where e.notification_id = f.id and e.seq = f.number limit 1) e on true
  order by f.nth`;

/** `size`: bytes of its request. No detail of what the record no longer has. */
export type Sized = { size: number; detail: FactDetail | undefined };

/** Of the first of them, in their order: as many as have so many bytes of requests together, and one at least. */
export async function detailsOf(db: Queryable, facts: readonly Fact[], mostBytes: number): Promise<Sized[]> {
  if (facts.length === 0) return [];
  const { rows } = await db.query<FactDetail & { size: number; channel: Channel | null }>({
    name: "carillon-callback-details",
    text: DETAILS,
    values: [
      facts.map(({ tenant }) => tenant),
      facts.map(({ notificationId }) => notificationId),
      facts.map(({ number }) => number),
      mostBytes,
    ],
  });
  return rows.map(({ size, ...row }) => ({ size, detail: row.channel === null ? undefined : row }));
}

/** Forgets who asked, of what is no longer kept; a batch at a time, answers with how many. */
export async function forgetMarkers(db: Queryable, days: number, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.callback_markers where id = any (array(
       select id from carillon.callback_markers where id < carillon.first_id(carillon.now() - $1 * interval '1 day')
       order by id limit $2 for update skip locked))`,
    [days, batch],
  );
  return rowCount ?? 0;
}
