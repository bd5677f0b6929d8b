// The queue in PostgreSQL: one statement per verb.
//
// A claim moves rows from ready to leased, a settlement deletes them there and writes the record; the
// claim's index is never larger than the work in hand, whatever is scheduled or finished. Rows are
// locked in order of seq everywhere, so verbs cannot deadlock. One token per claim fences all its rows.

import type { Attempt, Lease } from "../domain/attempt.ts";
import type { NotificationRequest } from "../domain/notification.ts";
import { PRIORITIES, type Priority } from "../domain/priority.ts";
import type { Queryable } from "../store/database.ts";
import type { Queue, Settled } from "./queue.ts";

type Row = {
  seq: number;
  token: number;
  tenant: number;
  id: string;
  priority: number;
  attempt: number;
  request: NotificationRequest;
  accepted: number;
  expires: number | null;
  now: number;
  held_by?: number;
};

// Numbers, not timestamps: parsing a date costs the driver more than all the rest of the row.
const TAKEN = `l.seq::float8 as seq, l.token::float8 as token, l.tenant, l.id, l.priority, l.attempt, n.request,
  date_part('epoch', n.accepted_at) * 1000 as accepted, date_part('epoch', l.expires_at) * 1000 as expires,
  date_part('epoch', statement_timestamp()) * 1000 as now`;

// A probe per lane, so that an empty lane costs nothing; ctid, because rows of ready are locked here and never updated.
const CLAIM = `
  with picked as materialized (
    select r.* from unnest($4::smallint[]) as lane
    cross join lateral (
      select ctid as place, seq, priority, tenant, id, attempt, expires_at from carillon.ready
      where priority = lane order by seq limit $2 for update skip locked
    ) r limit $2
  ), gone as (
    delete from carillon.ready where ctid = any (array(select place from picked))
  ), l as (
    insert into carillon.leased (seq, priority, tenant, id, attempt, expires_at, worker, token, started_at, lease_until)
    select seq, priority, tenant, id, attempt + 1, expires_at, $1, (select nextval('carillon.lease_token')),
      clock_timestamp(), clock_timestamp() + $3 * interval '1 ms'
    from picked returning *
  )
  select ${TAKEN} from l cross join lateral (
    select accepted_at, request from carillon.notifications n where n.tenant = l.tenant and n.id = l.id
  ) n`;

// The planner is pinned to a probe per row; a row that was swept meanwhile has another token when its lock is free.
const SETTLE = `
  with s as materialized (
    select * from json_to_recordset($1) as x(q bigint, k bigint, t carillon.status, w float8, b smallint, o text, p text,
      e text, l real, c real, d json, h integer, r text)
  ), held as (
    delete from carillon.leased using s where leased.seq = s.q and leased.token = s.k
    returning s.*, seq, priority, tenant, id, attempt, expires_at, worker, started_at
  ), recorded as (
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, token, worker, started_at,
      provider, outcome, error, latency_ms, cost, detail)
    select id, tenant, 'attempt', 'processing', t, attempt, k, coalesce(h, worker), started_at, p, o, e, l, c, d
    from held where o is not null
  ), tracked as (
    insert into carillon.receipts (provider, receipt, tenant, notification_id)
    select p, r, tenant, id from held where r is not null on conflict do nothing
  ), waiting as (
    insert into carillon.schedule (seq, due_at, priority, tenant, id, attempt, expires_at)
    select seq, clock_timestamp() + w * interval '1 ms', priority, tenant, id, attempt - b, expires_at
    from held where t = 'pending'
  ), back as (
    insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
    select priority, seq, tenant, id, attempt - b, expires_at from held where t = 'queued'
  )
  select q::float8 as seq, k::float8 as token from held`;

const EXTEND = `
  update carillon.leased set lease_until = clock_timestamp() + $3 * interval '1 ms'
  where seq = any (array(
    select seq from carillon.leased where token = any ($2::bigint[]) and worker = $1 and lease_until > clock_timestamp()
    order by seq for update))
  returning seq::float8 as seq`;

const SWEEP = `
  with expired as materialized (
    select seq, worker from carillon.leased where lease_until <= clock_timestamp() order by seq limit $2 for update skip locked
  ), l as (
    update carillon.leased set worker = $1, token = (select nextval('carillon.lease_token')),
      lease_until = clock_timestamp() + $3 * interval '1 ms'
    where seq = any (array(select seq from expired)) returning *
  )
  select ${TAKEN}, x.worker as held_by from l cross join lateral (select worker from expired where seq = l.seq limit 1) x
  cross join lateral (
    select accepted_at, request from carillon.notifications n where n.tenant = l.tenant and n.id = l.id
  ) n`;

const ALL_RANKS = [0, 1, 2, 3];

export function createPostgresQueue(db: Queryable, monotonic: () => number): Queue {
  async function take(name: string, text: string, leaseMs: number, values: unknown[]): Promise<[Row[], Lease]> {
    // Read before the statement starts: our idea of the lease's end is then never later than the database's.
    const claimedAt = monotonic();
    const { rows } = await db.query<Row>({ name, text, values });
    const { token = 0, now = 0 } = rows[0] ?? {};
    return [rows, { token, endsAt: claimedAt + leaseMs, claimedAtMs: now, claimedAt }];
  }

  return {
    async claim(worker, count, leaseMs, ranks = ALL_RANKS) {
      const [rows, lease] = await take("carillon-claim", CLAIM, leaseMs, [worker, count, leaseMs, ranks]);
      // RETURNING has no order.
      return rows.sort((a, b) => a.priority - b.priority || a.seq - b.seq).map((row) => attemptOf(row, lease));
    },
    async settle(batch) {
      const { rows } = await db.query<{ seq: number; token: number }>({
        name: "carillon-settle",
        text: SETTLE,
        values: [JSON.stringify([...batch].sort((a, b) => a.seq - b.seq).map(rowOf))],
      });
      if (rows.length === batch.length) return batch.map(() => true);
      const held = new Map(rows.map(({ seq, token }) => [seq, token]));
      return batch.map(({ seq, token }) => held.get(seq) === token);
    },
    async extend(worker, tokens, leaseMs) {
      const { rows } = await db.query<{ seq: number }>({
        name: "carillon-extend",
        text: EXTEND,
        values: [worker, tokens, leaseMs],
      });
      return rows.map(({ seq }) => seq);
    },
    async sweep(worker, count, leaseMs) {
      const [rows, lease] = await take("carillon-sweep", SWEEP, leaseMs, [worker, count, leaseMs]);
      return rows.map((row) => ({ ...attemptOf(row, lease), heldBy: row.held_by ?? worker }));
    },
    async depth() {
      const { rows } = await db.query<{ depth: number[]; processing: number; scheduled: number }>({
        name: "carillon-depth-all",
        text: `select array(select (select count(*)::int from carillon.ready where priority = lane)
            from generate_series(0, 3) as lane) as depth,
          (select count(*)::int from carillon.leased) as processing,
          (select count(*)::int from carillon.schedule) as scheduled`,
      });
      const { depth = [], processing = 0, scheduled = 0 } = rows[0] ?? {};
      const lanes = PRIORITIES.map((lane, rank): [Priority, number] => [lane, depth[rank] ?? 0]);
      return { depth: Object.fromEntries(lanes) as { [lane in Priority]: number }, processing, scheduled };
    },
  } satisfies Queue;
}

const attemptOf = (row: Row, lease: Lease): Attempt => ({
  seq: row.seq,
  lease,
  tenant: row.tenant,
  id: row.id,
  rank: row.priority,
  number: row.attempt,
  request: row.request,
  acceptedAtMs: row.accepted,
  expiresAtMs: row.expires ?? undefined,
});

function rowOf({ seq, token, settlement, account }: Settled) {
  const isWaiting = settlement.to === "pending";
  const givesBack = settlement.to === "queued" || (isWaiting && !settlement.spendsAttempt);
  return {
    q: seq,
    k: token,
    t: settlement.to,
    w: isWaiting ? settlement.waitMs : undefined,
    b: givesBack ? 1 : 0,
    o: account?.outcome,
    p: account?.provider,
    e: account?.error,
    l: account?.latencyMs,
    c: account?.cost,
    d: account?.detail,
    h: account?.worker,
    r: account?.receipt,
  };
}
