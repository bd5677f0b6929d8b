// The statement that claims, and what it answers.

import type { NotificationRequest } from "#domain/notification.ts";
import { bytesOf } from "#record/request-bytes.ts";
import { ms } from "./epoch-ms.ts";
import type { Flow } from "./turns.ts";

// queue_plan() says how many of which flow, in the order of lanes; whose turn is when, this process finds out (turns.ts). Rows of ready are
// locked here and never updated, so ctid finds them; those of later may have been, by whoever writes SQL.
// What was taken is read in one order everywhere: places in the claim are counted from that. Every column that a row carries
// through here shows in the drain. The limit of one keeps the planner from anything but a probe per row. Columns as JSON cost the driver
// half of what rows do; a hundred at a time, so that large requests are not put together into one enormous answer. Where all of it comes to more
// than MOST_BYTES only the first of each tenant are taken that come to that between them, or else one tenant's large requests would be more than
// the process can hold; the others stay where they are.
const CHUNK = 100;
export const MOST_BYTES = 16 * 1024 * 1024;
const ATTEMPT = "seq, id, (attempt + 1)::smallint as attempt, expires_at";
const TAKEN = "priority, tenant, due_at, place, seq, id, attempt, expires_at, accepted_at, request, size";
export const CLAIM = `
  with turns as materialized (
    select * from carillon.queue_plan($2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
  ), found as materialized (
    select t.lane as priority, t.tenant, r.*, n.* from turns t
    cross join lateral (
      select * from (
        select due_at, ctid as place, ${ATTEMPT} from carillon.later
        where t.is_due and priority = t.lane and tenant = t.tenant and pool = t.pool and due_at <= carillon.now()
          and (due_at, seq) <= (t.last_due, t.last_seq) order by due_at, seq limit t.takes for update skip locked
      ) due
      union all
      select * from (
        select null::timestamptz, ctid, ${ATTEMPT} from carillon.ready
        where not t.is_due and priority = t.lane and tenant = t.tenant and pool = t.pool and seq >= t.head and seq <= t.last_seq
        order by seq limit t.takes for update skip locked
      ) ready
    ) r
    left join lateral (
      select accepted_at, request, ${bytesOf("request")} as size
      from carillon.notifications n where n.tenant = t.tenant and n.id = r.id limit 1
    ) n on true
  ), taken as materialized (
    select ${TAKEN} from found where (select sum(size) from found) < ${MOST_BYTES} is not false
    union all
    select ${TAKEN} from (
      select *, sum(size) over (order by priority, nth, tenant rows between unbounded preceding and 1 preceding) as before from (
        select *, row_number() over (partition by priority, tenant order by due_at, seq) as nth from found
        where (select sum(size) from found) >= ${MOST_BYTES}
      ) numbered
    ) large where coalesce(before, 0) < ${MOST_BYTES}
  ), gone as (
    delete from carillon.ready where ctid = any (array(select place from taken where due_at is null))
  ), due as (
    delete from carillon.later where seq = any (array(select seq from taken where due_at is not null))
  ), c as (
    insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done,
      seqs, priorities, tenants, ids, attempts, expiries)
    select nextval('carillon.lease_token'), $1, carillon.now(), clock_timestamp() + $3 * interval '1 ms', min(seq), max(seq),
      repeat('0', count(*)::integer)::bit varying, array_agg(seq), array_agg(priority), array_agg(tenant), array_agg(id),
      array_agg(attempt), array_agg(expires_at)
    from taken having count(*) > 0
    returning token, cardinality(seqs) as size
  )
  select c.token::float8 as token, ${ms("carillon.now()")} as now, chunk.*, planned.*,
    (select json_object_agg(seq, (extract(epoch from due_at) * 1000000)::bigint) from taken where due_at is not null) as dues
  from (
    select json_agg(json_build_array(lane, tenant, pool, is_due, takes, seen, weight)) as flows, bool_and(is_over) as "isOver" from turns
  ) planned
  left join c on true left join generate_series(0, c.size - 1, ${CHUNK}) as start on true
  left join lateral (
    select json_agg(p.seq) as seqs, json_agg(p.tenant) as tenants, json_agg(p.id) as ids, json_agg(p.priority) as ranks,
      json_agg(p.attempt) as numbers, json_agg(p.request) as requests, sum(p.size)::float8 as bytes,
      json_agg((${ms("coalesce(p.due_at, p.accepted_at)")})::bigint) as sinces,
      json_agg((${ms("p.expires_at")})::bigint) as expiries
    from (select * from taken offset start limit ${CHUNK}) p
  ) chunk on true
  where planned.flows is not null`;

/** Of what is claimed, a column an array. */
export type Chunk = {
  token: number;
  now: number;
  seqs: number[];
  tenants: number[];
  ids: string[];
  ranks: number[];
  numbers: number[];
  requests: (NotificationRequest | null)[];
  bytes: number | null;
  sinces: number[];
  expiries: (number | null)[];
} & Planned;

/** Of all chunks: what was to be claimed, whether these are all flows, and by seq the times of what waited for them, in microseconds. */
type Planned = { flows: Flow[]; isOver: boolean; dues: { [seq: string]: number } | null };

/** There was something to claim, and others had just locked all of it. */
export type Missed = Planned & { token: null };
