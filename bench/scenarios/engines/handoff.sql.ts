// The rules of an engine beside PostgreSQL, in SQL and Lua: what of the queue stays in the database when what is ready waits elsewhere.
//
// A commit offers all that it accepts with one row (a handoff), which has a bit for each that is no longer open; its entries wait elsewhere.
// `proto` is made anew for every run, beside the product's own tables, which it uses for everything else.

export const SCHEMA = `
  drop schema if exists proto cascade;
  create schema proto;
  create sequence proto.handoff as bigint;
  create table proto.handoffs (
    number bigint primary key, priority smallint not null, first_seq bigint not null, last_seq bigint not null, done bit varying not null,
    seqs bigint[] not null, tenants integer[] not null, ids uuid[] not null, expiries timestamptz[] not null
  ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_cost_delay = 0);
  alter table proto.handoffs alter seqs set storage external, alter tenants set storage external, alter ids set storage external,
    alter expiries set storage external;
  create function proto.accept(rows json, out accepted_at timestamptz, out handed json) language plpgsql as $$
  declare
    is_told boolean;
  begin
    accepted_at := carillon.now();
    with stored as (
      insert into carillon.notifications as n (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request, pool)
      select t, i, nextval('carillon.acceptance'), c, p, u, accept.accepted_at, d, e, r, carillon.queue_pool(c, 0::smallint)
      from json_to_recordset(rows) as x(i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json)
      returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at, n.pool
    ), offered as (
      insert into carillon.queue_later (due_at, priority, seq, tenant, id, expires_at, pool)
      select due_at, priority, seq, tenant, id, expires_at, pool from stored where due_at > accept.accepted_at
    ), handed as (
      insert into proto.handoffs (number, priority, first_seq, last_seq, done, seqs, tenants, ids, expiries)
      select nextval('proto.handoff'), priority, min(seq), max(seq), repeat('0', count(*)::integer)::bit varying, array_agg(seq), array_agg(tenant), array_agg(id),
        array_agg(expires_at)
      from stored where due_at > accept.accepted_at is not true group by priority
      returning number, seqs
    )
    select carillon.tell(array_agg(tenant), '{1}', array_agg(id), '{}'), (select json_agg(json_build_array(number, seqs)) from handed)
    into is_told, handed from stored where tenant > 0;
  end $$;`;

/** \`$1\`, \`$2\`: numbers of handoffs, and masks of what is no longer open. */
export const marks = (numbers: string, masks: string) => `
  h as materialized (
    select m.number, h.done, h.done | m.mask as after from unnest(${numbers}::bigint[], ${masks}::bit varying[]) as m(number, mask)
    cross join lateral (select done from proto.handoffs where number = m.number for update) h
  ), h_ended as (
    delete from proto.handoffs where number = any (array(select number from h where bit_count(after) = length(after)))
  ), h_marked as (
    update proto.handoffs set done = (select after from h where h.number = handoffs.number)
    where number = any (array(select number from h where bit_count(after) < length(after)))
  )`;

const INTO_CLAIMS = `
    insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done,
      seqs, priorities, tenants, ids, attempts, expiries)
    select nextval('carillon.lease_token'), 1, carillon.now(), clock_timestamp() + interval '30 s', min(seq), max(seq),
      repeat('0', count(*)::integer)::bit varying, array_agg(seq), array_agg(priority), array_agg(tenant), array_agg(id),
      array_agg(attempt), array_agg(expires_at)
    from taken having count(*) > 0
    returning token, cardinality(seqs) as size`;

const REQUEST = `left join lateral (
      select accepted_at, request from carillon.notifications n where n.tenant = g.tenant and n.id = g.id limit 1
    ) n on true`;

const answer = (withRequests: boolean) => `
  select c.token::float8 as token, chunk.* from c left join generate_series(0, c.size - 1, 100) as start on true
  left join lateral (
    select json_agg(p.seq) as seqs${withRequests ? ", json_agg(p.request) as requests" : ""} from (select * from taken offset start limit 100) p
  ) chunk on true`;

const GIVEN = "unnest($1::bigint[], $2::smallint[], $3::integer[], $4::uuid[], $5::smallint[], $6::timestamptz[]";

/** What the engine gave is taken at its word. */
export const claimGiven = (readsRequests: boolean) =>
  readsRequests
    ? `with taken as materialized (
    select g.*, n.* from ${GIVEN}) as g(seq, priority, tenant, id, attempt, expires_at) ${REQUEST}
  ), c as (${INTO_CLAIMS}) ${answer(true)}`
    : `insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done,
      seqs, priorities, tenants, ids, attempts, expiries)
    values (nextval('carillon.lease_token'), 1, carillon.now(), clock_timestamp() + interval '30 s', ($1::bigint[])[1], ($1::bigint[])[cardinality($1)],
      repeat('0', cardinality($1))::bit varying, $1, $2::smallint[], $3::integer[], $4::uuid[], $5::smallint[], $6::timestamptz[])
    returning token::float8 as token`;

/** Only what its handoff has as open is claimed, and is open no longer: whatever the engine gives twice is claimed once. */
export const claimChecked = (readsRequests: boolean) => `
  with ${marks("$7", "$8")}, taken as materialized (
    select g.seq, g.priority, g.tenant, g.id, g.attempt, g.expires_at${readsRequests ? ", n.*" : ""}
    from ${GIVEN}, $9::bigint[], $10::integer[]) as g(seq, priority, tenant, id, attempt, expires_at, handoff, place)
    join h on h.number = g.handoff and get_bit(h.done, g.place) = 0 ${readsRequests ? REQUEST : ""}
  ), c as (${INTO_CLAIMS}) ${answer(readsRequests)}`;

/** No engine at all: whole handoffs are taken where they are. */
export const CLAIM_ROWS = `
  with rows as materialized (
    select * from proto.handoffs order by priority, number limit $1 for update skip locked
  ), gone as (
    delete from proto.handoffs where number = any (array(select number from rows))
  ), taken as materialized (
    select g.*, n.* from rows, lateral (
      select seq, rows.priority, tenant, id, 1::smallint as attempt, expires_at
      from unnest(rows.seqs, rows.tenants, rows.ids, rows.expiries) as u(seq, tenant, id, expires_at)
    ) g ${REQUEST}
  ), c as (${INTO_CLAIMS}) ${answer(true)}`;

/** Moves up to so many entries into a private list, which is somebody else's after its deadline. */
export const TAKE = `
  local taken = redis.call('LPOP', KEYS[1], ARGV[1])
  if not taken then return {} end
  for from = 1, #taken, 1000 do redis.call('RPUSH', KEYS[2], unpack(taken, from, math.min(from + 999, #taken))) end
  redis.call('ZADD', KEYS[3], ARGV[2], KEYS[2])
  return taken`;
export const DROP = `
  redis.call('DEL', KEYS[1])
  return redis.call('ZREM', KEYS[2], KEYS[1])`;
