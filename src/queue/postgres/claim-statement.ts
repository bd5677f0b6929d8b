// The statement that claims, and what it answers.

import type { NotificationRequest } from "#domain/notification.ts";
import { bytesOf } from "#record/request-bytes.ts";
import { ms } from "./epoch-ms.ts";
import type { Flow } from "./turns.ts";

// queue_plan() says how many of which flow, in the order of lanes; whose turn is when, this process finds out (turns.ts). Rows of ready are
// locked here and never updated, so ctid finds them; those of later may have been, by whoever writes SQL.
// What was taken is read in one order everywhere: places in the claim are counted from that. Every column that a row carries
// through here shows in the drain. The limit of one keeps the planner from anything but a probe per row. Columns as JSON cost the driver
// half of what rows do; some hundred at a time, so that large requests are not put together into one enormous answer, and no more often, as
// each time what comes before is passed over. Where all of it comes to more than MOST_BYTES only the first of each tenant are taken that come to that between them, or else one tenant's large requests would be more than
// the process can hold; the others stay where they are.
const CHUNK = 250;
export const MOST_BYTES = 16 * 1024 * 1024;
const ATTEMPT = "seq, id, (attempt + 1)::smallint as attempt, expires_at";
const TAKEN = "priority, tenant, due_at, place, seq, id, attempt, expires_at, accepted_at, request, size";
const REQUEST = (tenant: string, id: string) => `
      select accepted_at, request, ${bytesOf("request")} as size
      from carillon.notifications n where n.tenant = ${tenant} and n.id = ${id} limit 1`;

/** What PostgreSQL has, by turns. */
const FOUND = `
  turns as materialized (
    select * from carillon.queue_plan($2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
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
    left join lateral (${REQUEST("t.tenant", "r.id")}
    ) n on true
  )`;

const DELETED = `
  gone as (
    delete from carillon.ready where ctid = any (array(select place from taken where due_at is null and place is not null))
  ), due as (
    delete from carillon.later where seq = any (array(select seq from taken where due_at is not null))
  )`;

const claims = (more: { columns: string; values: string }) => `
  c as (
    insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done,
      seqs, priorities, tenants, ids, attempts, expiries${more.columns})
    select nextval('carillon.lease_token'), $1, carillon.now(), clock_timestamp() + $3 * interval '1 ms', min(seq), max(seq),
      repeat('0', count(*)::integer)::bit varying, array_agg(seq), array_agg(priority), array_agg(tenant), array_agg(id),
      array_agg(attempt), array_agg(expires_at)${more.values}
    from taken having count(*) > 0
    returning token, cardinality(seqs) as size
  )`;

const answer = (more: string, isAnswered: string) => `
  select c.token::float8 as token, ${ms("carillon.now()")} as now, chunk.*, planned.*${more},
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
  where ${isAnswered}`;

export const CLAIM = `
  with ${FOUND}, taken as materialized (
    select ${TAKEN} from found where (select sum(size) from found) < ${MOST_BYTES} is not false
    union all
    select ${TAKEN} from (
      select *, sum(size) over (order by priority, nth, tenant rows between unbounded preceding and 1 preceding) as before from (
        select *, row_number() over (partition by priority, tenant order by due_at, seq) as nth from found
        where (select sum(size) from found) >= ${MOST_BYTES}
      ) numbered
    ) large where coalesce(before, 0) < ${MOST_BYTES}
  ), ${DELETED}, ${claims({ columns: "", values: "" })}
  ${answer("", "planned.flows is not null")}`;

// The same with what an engine gave: the numbers of handoffs, and of each the bits that are wanted. Handoffs are locked in the order of their numbers. What they
// have as open is taken, and is open no longer; of both together the first by turns, where it is more than was asked for or than can be held. What
// is paused or refused may have been given by an engine that had not heard of it: it stays as it is, and open. So does what comes after something that PostgreSQL
// may still have: lower lanes where a lane has more than was found, a tenant's own that are later than its share of a lane, others' beyond the turns that such a tenant had, and those of a tenant that has something ready there and was not looked at. Everything else of a notification is
// read where it was accepted: an engine cannot say what is not so, and nothing is sent to the database that it has.
const WEIGHT = "coalesce((select t.weight from carillon.tenants t where t.id = tenant and t.weight <> 1 limit 1), 1)";
const IS_BEFORE = "tenant < ($5::integer[])[array_position($4::smallint[], priority)]";
const IS_ALL = "(select is_all from size_up)";
const BOUND = `(
  select jsonb_object_agg(lane, bound) from (
    select lane, min(case when got = 0 then -1 else (got - 1) / weight end) as bound from shares where is_first group by lane
  ) b)`;
const BEFORE = "(select jsonb_object_agg(lane || ' ' || tenant, last) from shares where is_first)";
// The lanes in which others than those that were looked at may have something ready.
const UNSEEN = "(select array_agg(distinct lane) from shares where not is_over)::smallint[]";
const SEEN = "(select jsonb_object_agg(lane || ' ' || tenant, true) from shares)";
const HIDDEN = "(select jsonb_object_agg(priority || ' ' || tenant, true) from hidden)";
const zeros = (count: string) => `repeat('0', ${count})::bit varying`;
const seqAt = (place: string) =>
  `case when cardinality(h.seqs) > 1 then h.seqs[${place}] else h.seqs[1] + ${place} - 1 end`;
export const CLAIM_GIVEN = `
  with ${FOUND}, given as materialized (
    select n.number, h.engine, h.priority, h.done, h.seqs[1:] as seqs, h.stretches, least(length(n.bits), length(h.done)) as last,
      (~h.done) & substring(n.bits || ${zeros("greatest(0, length(h.done) - length(n.bits))")} for length(h.done)) as wanted
    from (select number, bits from unnest($17::bigint[], $18::bit varying[]) as x(number, bits) order by number) n
    cross join lateral (select * from carillon.handoffs h where h.number = n.number for update) h
  ), handed as materialized (
    select h.*, ${seqAt("position(B'1' in h.wanted)")} as first_seq, ${seqAt("h.last")} as last_seq from given h where bit_count(h.wanted) > 0
  ), asked as materialized (
    select a.* from carillon.queue_open($8, $9, $10, $11) a where exists (select from carillon.pauses)
  ), shares as materialized (
    select lane, tenant, coalesce(max(last), 0) as last, sum(got) as got, max(weight) as weight, sum(got) < max(seen) or not bool_and(is_over) as has_more,
      sum(got) >= max(takes) or sum(got) < max(seen) as is_first, bool_and(is_over) as is_over
    from (
      select lane, tenant, takes, seen, weight, 0 as got, is_over, null::bigint as last from turns
      union all
      select priority, tenant, 0, 0, 1, 1, true, case when due_at is null then seq end from found
    ) parts group by lane, tenant
  ), hidden as materialized (
    select d.priority, d.tenant from (
      select distinct h.priority, s.tenant from handed h cross join lateral unnest(h.stretches) s where h.priority = any (${UNSEEN})
    ) d where (${SEEN} ? (d.priority || ' ' || d.tenant)) is not true and (
      select true from carillon.ready r where r.priority = d.priority and r.tenant = d.tenant
        and carillon.queue_takes((select o.bounds from carillon.queue_open($8, $9, $10, $11) o), r.tenant, r.pool)
      order by r.tenant, r.pool, r.seq limit 1)
  ), candidates as materialized (
    select ${TAKEN}, null::bigint as handoff, null::integer as bit, null::integer as handed_size, true as may from found
    union all
    select h.priority, s.tenant, null, null, x.seq, x.id, 1::smallint, x.expires_at, x.accepted_at, x.request, ${bytesOf("x.request")}, h.number, x.bit, length(h.done),
      (select a.lanes is null or h.priority = any (a.lanes) and carillon.queue_takes(a.bounds, s.tenant, x.pool) from asked a) is not false
      and h.priority <= (select min(lane) from shares where has_more) is not false
      and case when ${BEFORE} is null then true else x.seq < (${BEFORE} ->> (h.priority || ' ' || s.tenant))::bigint is not false end
      and (${HIDDEN} ? (h.priority || ' ' || s.tenant)) is not true
    from handed h
    cross join lateral (select * from unnest(h.stretches) s where s.first_seq <= h.last_seq and s.last_seq >= h.first_seq) s
    cross join lateral (
      select n.seq, n.id, n.pool, n.expires_at, n.accepted_at, n.request, carillon.queue_place(h.seqs, length(h.done), n.seq) as bit
      from carillon.notifications n where n.tenant = s.tenant and n.id between s.first_id and s.last_id and n.handoff = h.number offset 0
    ) x where get_bit(h.wanted, x.bit) = 1
  ), size_up as materialized (
    select bool_and(may) and count(*) <= $2 and coalesce(sum(size), 0) < ${MOST_BYTES}
      and not exists (select from shares where is_first) as is_all from candidates
  ), taken as materialized (
    select ${TAKEN}, handoff, bit, handed_size from candidates where ${IS_ALL}
    union all
    select ${TAKEN}, handoff, bit, handed_size from (
      select *, row_number() over turns as nth, sum(size) over (turns rows between unbounded preceding and 1 preceding) as before from (
        select *, (row_number() over (partition by priority, tenant order by due_at, seq) - 1) / ${WEIGHT} as turn from candidates where may and not ${IS_ALL}
      ) turned where handoff is null or ${BOUND} is null or turn <= (${BOUND} ->> priority::text)::bigint is not false
      window turns as (order by priority, turn, ${IS_BEFORE}, tenant, due_at, seq)
    ) first where nth <= $2 and coalesce(before, 0) < ${MOST_BYTES}
  ), ${DELETED}, untaken as materialized (
    select handoff, bit, handed_size from candidates where handoff is not null and not ${IS_ALL}
    except select handoff, bit, handed_size from taken where not ${IS_ALL}
  ), marks as materialized (
    select number, bit_or(done) | (bit_or(wanted) & coalesce(~bit_or(kept), bit_or(wanted))) as after from (
      select number, done, wanted, null as kept from handed
      union all
      select handoff, null, null, set_bit(${zeros("handed_size")}, bit, 1) from untaken
    ) parts group by number
  ), ended as (
    delete from carillon.handoffs where number = any (array(select number from marks where bit_count(after) = length(after))) returning number
  ), marked as (
    update carillon.handoffs set done = ((select jsonb_object_agg(number, after) from marks) ->> number::text)::bit varying
    where number = any (array(select number from marks where bit_count(after) < length(after)))
  ), ${claims({
    columns: ", engine, given",
    values: `, (select engine from handed limit 1), string_agg(case when handoff is null then '0' else '1' end, '')::bit varying`,
  })}
  ${answer(
    ", (select json_agg(json_build_array(handoff, bit)) from untaken) as left, (select json_agg(number) from ended) as ended",
    "true",
  )}`;

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
type Planned = { flows: Flow[] | null; isOver: boolean | null; dues: { [seq: string]: number } | null };

/** There was something to claim, and others had just locked all of it. */
export type Missed = Planned & { token: null };

/** Of what an engine gave: handoffs and bits of what is open and was not taken. And the handoffs that are over. */
export type Answered = { left?: [number, number][] | null; ended?: number[] | null };
