// Blanks what the record says of a person. What was accepted and what it came to stays, so that the ledger goes on balancing.

import type { Status } from "#domain/status.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Whose, and up to when; and what was made since by something that is gone now. */
export type Traces = { tenant: number; userId: string; requestedAt: Date; madeSince: readonly string[] };
export type Trace = { id: string; status: Status };

export const NO_ID = "00000000-0000-0000-0000-000000000000";

/** In the order of their ids, from after `reached`. */
export async function findTraces(
  tx: Queryable,
  { tenant, userId, requestedAt, madeSince }: Traces,
  reached: string,
  limit: number,
): Promise<Trace[]> {
  const { rows } = await tx.query<Trace>(
    `select r.id, r.status from (
       select id from carillon.notifications where tenant = $1 and user_id = $2 and id > $3
         and (accepted_at <= $4 or id = any ($5)) order by id limit $6
     ) n cross join lateral (
       select r.id, r.status from carillon.records r where r.tenant = $1 and r.id = n.id offset 0
     ) r order by r.id`,
    [tenant, userId, reached || NO_ID, requestedAt, madeSince, limit],
  );
  return rows;
}

/** Where these went: the addresses, as they were given. */
export async function findAddresses(tx: Queryable, tenant: number, ids: readonly string[]): Promise<string[]> {
  const { rows } = await tx.query<{ address: string }>(
    `select distinct address from carillon.notifications n,
       unnest(array[n.request #>> '{recipient,email}', n.request #>> '{recipient,phone}']) as address
     where n.tenant = $1 and n.id = any ($2) and address is not null`,
    [tenant, ids],
  );
  return rows.map(({ address }) => address);
}

export async function blank(tx: Queryable, tenant: number, ids: readonly string[]): Promise<void> {
  await tx.query("select carillon.blank($1, $2)", [tenant, ids]);
}

/** One that tells of a notification which is blank. `isForRequest`: it goes to the URL that the request named. */
export type CallbackTrace = Trace & { isForRequest: boolean };

/** Looks at so many of a tenant's callbacks, from after `reached`; `next` says where to go on, undefined at the end. */
export async function findCallbacks(
  tx: Queryable,
  tenant: number,
  reached: string,
  limit: number,
): Promise<{ callbacks: CallbackTrace[]; next: string | undefined }> {
  const { rows } = await tx.query<CallbackTrace & { seen: number; last: string | null }>(
    `with seen as materialized (
       select x.id, (x.request #>> '{callback,data,notificationId}')::uuid as about, x.request #> '{callback,data,forgotten}' is not null as is_blank
       from carillon.notifications x where x.tenant = -$1::integer and x.id > $2 order by x.id limit $3
     ), named as materialized (
       select s.id from seen s cross join lateral (
         select n.request from carillon.notifications n where n.tenant = $1 and n.id = s.about limit 1
       ) n where not s.is_blank and n.request ->> 'forgotten' is not null
     )
     select r.id, r.status, r."isForRequest", (select count(*)::int from seen) as seen, (select id from seen order by id desc limit 1) as last
     from (select) one left join (
       select r.* from named cross join lateral (
         select r.id, r.status, r.request #> '{callback,url}' is not null as "isForRequest" from carillon.records r
         where r.tenant = -$1::integer and r.id = named.id offset 0
       ) r
     ) r on true order by r.id`,
    [tenant, reached || NO_ID, limit],
  );
  const { seen = 0, last = null } = rows[0] ?? {};
  const callbacks = rows
    .filter(({ id }) => id !== null)
    .map(({ id, status, isForRequest }) => ({ id, status, isForRequest }));
  return { callbacks, next: seen === limit ? (last ?? undefined) : undefined };
}

export async function blankCallbacks(tx: Queryable, tenant: number, ids: readonly string[]): Promise<void> {
  await tx.query("select carillon.blank_callbacks($1, $2)", [tenant, ids]);
}
