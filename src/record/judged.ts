// Dead letters as a plan sees them: which event made each one, and why it had better be left alone.

import type { Reason } from "#domain/plan.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findSuppressed, hasSuppressionsOf, suppressionKey } from "#store/suppressions.ts";
import { conditionsOf, type DeadLetterFilter } from "./dead-letters.ts";

export type Judged = {
  id: string;
  /** The number of its last event, null where there is none. */
  seq: string | null;
  channel: string | null;
  provider: string | null;
  /** Null: it can be seen to. */
  reason: Reason | null;
};
type Row = Judged & { address: string | null };

/** How many later ones to the same user are looked at. */
const LATER = 20;

/** Of a dead letter `r`: what speaks against sending it. Few weeks are ever restored, so that is asked once. */
const AGAINST = `case
  when (select exists (select from carillon.archive_weeks where state = 'restored')) and carillon.is_restored(l.id) then 'restored'
  when r.request ->> 'forgotten' is not null then 'forgotten'
  when r.expires_at <= carillon.now() then 'expired'
  when r.user_id is not null and exists (
    select from (
      select o.id, o.request from carillon.notifications o
      where o.tenant = $1 and o.user_id = r.user_id and o.id > l.id and o.id < (select carillon.first_id(carillon.now() + interval '1 day'))
      order by o.id limit ${LATER}
    ) o where o.request #>> '{content,templateId}' = r.request #>> '{content,templateId}' and (
      select x.to_status from carillon.events x where x.notification_id = o.id order by x.seq desc, x.at desc limit 1
    ) in ('sent', 'delivered')) then 'reached'
end`;

const COLUMNS = (reason: string) => `l.id, e.seq, r.channel, e.provider, ${reason} as reason,
  case when $2 then coalesce(r.request #>> '{recipient,email}', r.request #>> '{recipient,phone}') end as address`;
const LAST = `(
  select e.* from carillon.events e where e.notification_id = l.id order by e.seq desc, e.at desc limit 1
) e`;

export type JudgedPage = { judged: Judged[]; looked: number; nextId: string | undefined };

/** Of the next `most` failures below `beforeId`, the newest first, those that are dead letters and fit the filter. */
export async function judgeFailed(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  { beforeId, most }: { beforeId: string | null; most: number },
): Promise<JudgedPage> {
  const values: unknown[] = [tenant, await hasSuppressionsOf(db, tenant)];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const narrow = ["tenant = $1", "to_status = 'failed'"];
  if (beforeId !== null) narrow.push(`notification_id < ${bind(beforeId)}`);
  // Nothing fails before it was accepted; the id carries another clock.
  if (filter.until) {
    narrow.push(`notification_id < carillon.first_id(${bind(filter.until)}::timestamptz + interval '1 day')`);
  }
  const { rows } = await db.query<Row & { looked: number; lastId: string | null }>(
    `with looked as materialized (
       select distinct notification_id as id from carillon.events where ${narrow.join(" and ")}
       order by notification_id desc limit ${bind(most)}
     ), extent as (
       select count(*)::int as looked, (select id from looked order by id limit 1) as last_id from looked
     ), found as materialized (
       select ${COLUMNS(AGAINST)} from looked l cross join lateral (
         select * from carillon.notifications n where n.tenant = $1 and n.id = l.id offset 0
       ) r cross join lateral ${LAST} where ${conditionsOf(filter, bind).join(" and ")}
     )
     select found.*, extent.looked, extent.last_id as "lastId" from extent left join found on true order by found.id desc`,
    values,
  );
  const { looked = 0, lastId = null } = rows[0] ?? {};
  const judged = await withSuppressed(
    db,
    tenant,
    rows.filter(({ id }) => id !== null),
  );
  return { judged, looked, nextId: looked === most ? (lastId ?? undefined) : undefined };
}

/** These, in their order; each is there. Locked until the transaction ends, so that what is true of them stays true. */
export async function judgeThese(tx: Queryable, tenant: number, ids: readonly string[]): Promise<Judged[]> {
  await tx.query(
    "select from carillon.notifications where tenant = $1 and id = any ($2::uuid[]) order by id for update",
    [tenant, ids],
  );
  const reason = `case
    when r.id is null then 'gone'
    when e.to_status is null or e.to_status in ('queued', 'pending', 'processing') then 'waiting'
    when e.to_status in ('sent', 'delivered', 'ambiguous') then 'sent'
    when e.to_status <> 'failed' then 'ended'
    when e.type = 'purged' then 'purged'
    else ${AGAINST} end`;
  const { rows } = await tx.query<Row>(
    `select ${COLUMNS(reason)} from unnest($3::uuid[]) with ordinality as l(id, place) left join lateral (
       select * from carillon.notifications n where n.tenant = $1 and n.id = l.id
     ) r on true left join lateral ${LAST} on r.id is not null order by l.place`,
    [tenant, await hasSuppressionsOf(tx, tenant), ids],
  );
  return withSuppressed(tx, tenant, rows);
}

async function withSuppressed(db: Queryable, tenant: number, rows: readonly Row[]): Promise<Judged[]> {
  const wanted = rows.flatMap(({ reason, address }) => (reason === null && address ? [{ tenant, address }] : []));
  const found = wanted.length === 0 ? new Map() : await findSuppressed(db, wanted);
  return rows.map(({ id, seq, channel, provider, reason, address }) => ({
    id,
    seq,
    channel,
    provider,
    reason: reason ?? (address && found.has(suppressionKey(tenant, address)) ? "suppressed" : null),
  }));
}
