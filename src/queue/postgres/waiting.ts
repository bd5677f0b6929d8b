// What becomes of notifications that wait, other than being claimed.

import { priorityOf } from "#domain/priority.ts";
import type { Status } from "#domain/status.ts";
import type { Change, Moved } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";

// A look by index for each, whatever the planner thinks of tables that fill and empty.
const CANCEL = `
  with n as materialized (
    select seq, id, handoff, coalesce(pool, carillon.queue_pool(channel, 0::smallint)) as pool
    from carillon.notifications where tenant = $1 and id = any ($2)
  ), queued as (
    delete from carillon.ready where tenant = $1 and ctid = any (array(
      select r.place from n cross join lateral (
        select ctid as place from carillon.ready where priority in (0, 1, 2, 3, 4) and tenant = $1 and pool in (0, n.pool) and seq = n.seq limit 1
      ) r)) returning id, 'queued'::carillon.status as was
  ), pending as (
    delete from carillon.later where tenant = $1 and ctid = any (array(
      select l.place from n cross join lateral (select ctid as place from carillon.later where seq = n.seq limit 1) l
    )) returning id, carillon.waits_as(due_at) as was
  ), handed as materialized (
    select carillon.queue_take_back(handoff, seqs) as seqs
    from (select handoff, array_agg(seq) as seqs from n where handoff is not null group by handoff order by handoff) h
  ), given as (
    select n.id, 'queued'::carillon.status as was from handed h cross join lateral unnest(h.seqs) as x(seq) join n on n.seq = x.seq
  )
  insert into carillon.events (notification_id, tenant, type, from_status, to_status)
  select id, $1, 'cancelled', was, 'cancelled' from (table queued union all table pending union all table given) gone
  returning notification_id as id`;

/** A claim and a cancel race for the same row, and whoever deletes it has won. Answers with those that were cancelled. */
export async function cancelAll(db: Queryable, tenant: number, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const { rows } = await db.query<{ id: string }>({
    name: "carillon-cancel",
    text: CANCEL,
    values: [tenant, ids],
  });
  return rows.map(({ id }) => id);
}

export async function cancel(db: Queryable, tenant: number, id: string): Promise<boolean> {
  return (await cancelAll(db, tenant, [id])).length > 0;
}

// A claim that races for the same row wins or loses as a whole.
const EXPIRE = `
  with queued as materialized (
    select ctid as place from carillon.ready where expires_at <= carillon.now() limit $1 for update skip locked
  ), pending as materialized (
    select ctid as place from carillon.later where expires_at <= carillon.now() limit $1 for update skip locked
  ), from_ready as (
    delete from carillon.ready where ctid = any (array(select place from queued))
    returning id, tenant, 'queued'::carillon.status as was
  ), from_later as (
    delete from carillon.later where ctid = any (array(select place from pending))
    returning id, tenant, carillon.waits_as(due_at) as was
  ), handed as (
    select id, tenant, 'queued'::carillon.status as was from carillon.queue_expire_handed($1::integer)
  )
  insert into carillon.events (notification_id, tenant, type, from_status, to_status)
  select id, tenant, 'expired', was, 'expired' from (table from_ready union all table from_later union all table handed) gone`;

export async function expire(db: Queryable, count: number): Promise<number> {
  const { rowCount } = await db.query({ name: "carillon-expire", text: EXPIRE, values: [count] });
  return rowCount ?? 0;
}

type Row = {
  status: Status | null;
  is_done: boolean;
  refusal: string | null;
  due_at: Date | null;
  expires_at: Date | null;
  priority: number;
};

export async function move(db: Queryable, tenant: number, id: string, change: Change): Promise<Moved> {
  const { dueAt = null, expiresAt = null, rank = null } = change;
  const { rows } = await db.query<Row>({
    name: "carillon-reschedule",
    text: "select * from carillon.reschedule($1, $2, $3, $4, $5, $6)",
    values: [tenant, id, dueAt, expiresAt, change.expiresAt === null, rank],
  });
  const row = rows[0];
  if (!row || row.status === null) return { kind: "unknown" };
  if (row.refusal !== null) return { kind: "refused", reason: row.refusal };
  if (!row.is_done) return { kind: "over", status: row.status };
  const { status, priority, due_at, expires_at } = row;
  return { kind: "done", status, priority: priorityOf(priority), dueAt: due_at, expiresAt: expires_at };
}

export async function retry(db: Queryable, tenant: number, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>("select carillon.retry($1, $2) as id", [tenant, ids]);
  return rows.map(({ id }) => id);
}
