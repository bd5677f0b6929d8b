-- Where ready work waits: in PostgreSQL, or as entries of an engine beside it (docs/engines.md).
--
-- What an engine has are hints. A commit that hands its notifications over to one writes a row for all of a lane, with a bit for each that
-- has left it: to be claimed, cancelled, moved, or to wait in PostgreSQL after all. Whoever sets the bit under the row's lock has it, so that an engine may
-- give an entry twice, forget it, or come back with what it knew yesterday.

-- Where goes what is accepted from now on.
create table carillon.engine (
  is_only boolean primary key default true check (is_only),
  name    text not null default 'postgres' check (name in ('postgres', 'redis', 'sqs'))
);
insert into carillon.engine default values;

-- Where some of what a commit accepted are in the record: whose they are, from which id to which, and their numbers. Read from there on, they cost a
-- fraction of what it takes to look for each. Among them may be others' that were accepted in the same moment.
create type carillon.stretch as (priority smallint, tenant integer, first_id uuid, last_id uuid, first_seq bigint, last_seq bigint);

-- A number tells the commit, and in its last three bits the lane. It never repeats.
create sequence carillon.handoff as bigint;
create table carillon.handoffs (
  number       bigint primary key,
  engine       text not null,
  priority     smallint not null check (priority between 0 and 3),
  handed_at    timestamptz not null default clock_timestamp(),
  -- Of an engine that does not itself know what it was offered.
  offered_at   timestamptz,
  first_expiry timestamptz,
  done         bit varying not null,
  -- Of a column that is the same for all, and of numbers that follow each other, the first alone; numbers go up.
  seqs         bigint[] not null,
  tenants      integer[] not null,
  pools        smallint[] not null,
  stretches    carillon.stretch[] not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_cost_delay = 0);
-- Read whole or not at all, and gone soon: not worth being packed.
alter table carillon.handoffs alter seqs set storage external, alter tenants set storage external, alter pools set storage external,
  alter stretches set storage external;
create index handoffs_expiring on carillon.handoffs (first_expiry) where first_expiry is not null;

-- To hand over is to insert here, as to offer is to insert into queue_now.
create view carillon.queue_handed as
  select number, engine, priority, first_expiry, done, seqs, tenants, pools, stretches from carillon.handoffs;

-- By which handoff it went; null where it went by none. Numbers do not repeat, so one that is over is found nowhere.
alter table carillon.notifications add handoff bigint;

-- Which of so many it is, from 0 on; null where it is none of them.
create function carillon.queue_place(seqs bigint[], size integer, seq bigint) returns integer
language sql immutable as $$
  select case when cardinality(seqs) > 1 then case when seqs[width_bucket(seq, seqs)] = seq then width_bucket(seq, seqs) - 1 end
    when seq - seqs[1] between 0 and size - 1 then (seq - seqs[1])::integer end
$$;

-- What is open of it. Its numbers are unpacked once, and not for every row.
create function carillon.queue_open_of(h carillon.handoffs)
returns table (place integer, seq bigint, tenant integer, id uuid, pool smallint, expires_at timestamptz)
language sql stable as $$
  select x.place, x.seq, s.tenant, x.id, x.pool, x.expires_at
  from (select h.seqs[1:] as seqs, length(h.done) as size offset 0) q cross join lateral unnest(h.stretches) s
  cross join lateral (
    select carillon.queue_place(q.seqs, q.size, n.seq) as place, n.seq, n.id, n.pool, n.expires_at from carillon.notifications n
    where n.tenant = s.tenant and n.id between s.first_id and s.last_id and n.handoff = h.number offset 0
  ) x where get_bit(h.done, x.place) = 0
$$;

-- Whose they are and what they go by, without a look into the record.
create view carillon.queue_handed_flows as
  select h.priority, h.handed_at, coalesce(h.tenants[place], h.tenants[1]) as tenant, coalesce(h.pools[place], h.pools[1]) as pool
  from (select priority, handed_at, done, tenants[1:] as tenants, pools[1:] as pools from carillon.handoffs offset 0) h
  cross join lateral generate_series(1, length(h.done)) as place where get_bit(h.done, place - 1) = 0;

-- Those that an engine may give.
create view carillon.handed as
  select h.number, x.place, h.engine, h.priority, h.handed_at, x.seq, x.tenant, x.id, x.pool, x.expires_at
  from carillon.handoffs h cross join lateral carillon.queue_open_of(h) x;

create or replace view carillon.queue_entries as
  select seq, tenant, id from carillon.ready
  union all select seq, tenant, id from carillon.later
  union all select seq, tenant, id from carillon.leased
  union all select seq, tenant, id from carillon.handed;

create function carillon.queue_has(of_tenant integer, of_pool smallint, of_seq bigint, of_handoff bigint) returns boolean
language sql stable as $$
  select carillon.queue_has(of_tenant, of_pool, of_seq) or exists (
    select from carillon.handoffs h where h.number = of_handoff and get_bit(h.done, carillon.queue_place(h.seqs, length(h.done), of_seq)) = 0)
$$;

-- Takes these out of their handoff; answers with those that were in it.
create function carillon.queue_take_back(of_handoff bigint, of_seqs bigint[]) returns bigint[]
language plpgsql as $$
declare
  h carillon.handoffs;
  taken bigint[];
  seq bigint;
begin
  select * into h from carillon.handoffs x where x.number = of_handoff for update;
  if not found then return '{}'; end if;
  taken := array(select s from unnest(of_seqs) as s where get_bit(h.done, carillon.queue_place(h.seqs, length(h.done), s)) = 0);
  foreach seq in array taken loop
    h.done := set_bit(h.done, carillon.queue_place(h.seqs, length(h.done), seq), 1);
  end loop;
  if bit_count(h.done) = length(h.done) then
    delete from carillon.handoffs x where x.number = of_handoff;
  elsif taken <> '{}' then
    update carillon.handoffs x set done = h.done where x.number = of_handoff;
  end if;
  return taken;
end
$$;

-- Ends up to so many of those that waited past their expiry; whoever claims from the same handoff goes first.
create function carillon.queue_expire_handed(most integer) returns table (id uuid, tenant integer)
language plpgsql as $$
#variable_conflict use_column
declare
  h carillon.handoffs;
  late bigint[];
  ids uuid[];
  tenants integer[];
  next_expiry timestamptz;
  -- Whoever gives large commits many expiries has each looked at as often: nobody else waits for that.
  looks integer := 10 * most;
begin
  for h in select * from carillon.handoffs x where x.first_expiry <= carillon.now() order by x.number limit most for update skip locked loop
    select coalesce(array_agg(o.seq) filter (where o.is_late), '{}'), array_agg(o.id) filter (where o.is_late),
      array_agg(o.tenant) filter (where o.is_late), min(o.expires_at) filter (where not o.is_late)
    into late, ids, tenants, next_expiry from (
      select x.*, x.expires_at <= carillon.now() and row_number() over (partition by x.expires_at <= carillon.now()) <= most as is_late
      from carillon.queue_open_of(h) x where x.expires_at is not null
    ) o;
    -- Once, and not for every row.
    perform carillon.queue_take_back(h.number, late);
    return query select * from unnest(ids, tenants);
    update carillon.handoffs x set first_expiry = next_expiry where x.number = h.number;
    most := most - cardinality(late);
    looks := looks - length(h.done);
    exit when most <= 0 or looks <= 0;
  end loop;
end
$$;

-- What waits of these handoffs waits in PostgreSQL from now on; answers with how many that are.
create function carillon.queue_bring_home(numbers bigint[]) returns integer
language sql as $$
  with h as materialized (
    select x.* from (select distinct n from unnest(numbers) as n order by n) m
    cross join lateral (select h as whole, h.number, h.priority from carillon.handoffs h where h.number = m.n for update) x
  ), gone as (
    delete from carillon.handoffs where number = any (array(select number from h))
  ), home as (
    insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at, pool)
    select h.priority, x.seq, x.tenant, x.id, 0, x.expires_at, x.pool from h cross join lateral carillon.queue_open_of(h.whole) x
    returning 1
  )
  select count(*)::integer from home
$$;

create function carillon.queue_hold(of_tenant integer, of_pool smallint, of_seq bigint, of_handoff bigint,
  out waits_as carillon.status, out due_at timestamptz)
language plpgsql as $$
begin
  select q.waits_as, q.due_at into waits_as, due_at from carillon.queue_hold(of_tenant, of_pool, of_seq) q;
  if waits_as is not null then return; end if;
  select 'queued' into waits_as from (select * from carillon.handoffs h where h.number = of_handoff for update) h
  where get_bit(h.done, carillon.queue_place(h.seqs, length(h.done), of_seq)) = 0;
end
$$;

create function carillon.queue_move(of_tenant integer, of_pool smallint, of_seq bigint, of_handoff bigint, of_id uuid, due timestamptz, rank smallint,
  expiry timestamptz) returns carillon.status
language plpgsql as $$
begin
  -- From there on it is like any other.
  if carillon.queue_take_back(of_handoff, array[of_seq]) <> '{}' then
    insert into carillon.ready (priority, seq, tenant, id, attempt, pool) values (rank, of_seq, of_tenant, of_id, 0, of_pool);
  end if;
  return carillon.queue_move(of_tenant, of_pool, of_seq, due, rank, expiry);
end
$$;

-- Moving from one engine to another, while everything goes on ----------------------------------------------------------------

-- The choice of where newly accepted work goes is one row, and changes at one instant: whoever hands over holds a lock shared with all others
-- who do, whoever changes the choice holds it alone. So once it has changed, nothing goes to where it went before any more, and what is
-- open there only becomes less.

-- `waiting` is what waited at the source when it began; of that `moved` were moved, and workers have taken the others.
create table carillon.engine_moves (
  id         bigint generated always as identity primary key,
  source     text not null,
  target     text not null check (target <> source),
  strategy   text not null check (strategy in ('drain-first', 'live-forward')),
  state      text not null default 'moving' check (state in ('moving', 'aborting', 'done', 'aborted')),
  last_seq   bigint not null,
  waiting    bigint not null,
  moved      bigint not null default 0,
  started_at timestamptz not null default carillon.now(),
  ended_at   timestamptz,
  check ((ended_at is null) = (state in ('moving', 'aborting')))
);
create unique index engine_moves_one on carillon.engine_moves ((true)) where ended_at is null;

-- Engines that a process takes from; null where it does not say, and then it knows of PostgreSQL alone.
alter table carillon.workers add engines text[];

-- Where goes what these can offer to; held until the transaction ends.
create function carillon.queue_engine(engines text[]) returns text
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('carillon.engine', 0));
  return (select e.name from carillon.engine e where e.name = any (engines));
end
$$;

create function carillon.queue_choose(engine text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('carillon.engine', 0));
  update carillon.engine e set name = engine;
end
$$;

-- What waits there of what was accepted up to that number, callbacks left out.
create function carillon.queue_left(of_engine text, up_to bigint) returns bigint
language plpgsql stable as $$
begin
  if of_engine = 'postgres' then return (select count(*) from carillon.ready r where r.priority < 4 and r.seq <= up_to); end if;
  return (select coalesce(sum(length(h.done) - bit_count(h.done)), 0) from carillon.handoffs h where h.engine = of_engine);
end
$$;

-- What is open of up to so many handoffs of one engine belongs to another from now on: answers with how many notifications that are.
create function carillon.queue_move_over(of_engine text, to_engine text, most integer) returns bigint
language plpgsql as $$
declare
  numbers constant bigint[] := array(select h.number from carillon.handoffs h where h.engine = of_engine order by h.number limit most for update skip locked);
begin
  if to_engine = 'postgres' then return carillon.queue_bring_home(numbers); end if;
  return (
    with over as (
      update carillon.handoffs h set engine = to_engine, offered_at = null where h.number = any (numbers) returning length(h.done) - bit_count(h.done) as n
    )
    select coalesce(sum(n), 0) from over);
end
$$;

-- Of what a claim holds, what an engine gave, and which.
alter table carillon.claims add engine text, add given bit varying;

-- From here on: the record, which asks the queue.

-- The engine that an attempt was claimed from; null is PostgreSQL.
alter table carillon.events add engine text;

create or replace view carillon.history as
  select n.tenant, n.id as notification_id, 0::bigint as seq, n.accepted_at as at, 'accepted' as type,
    null::carillon.status as from_status,
    -- As it was asked for; due_at may have been changed since.
    case when carillon.instant(n.request ->> 'scheduledFor') > n.accepted_at then 'pending' else 'queued' end::carillon.status
      as to_status,
    null::smallint as attempt, null::bigint as token, null::integer as worker, null::timestamptz as started_at,
    null::text as provider, null::text as outcome, null::text as error, null::real as latency_ms, null::real as cost,
    null::json as detail, null::text as engine
  from carillon.notifications n
  union all
  select e.tenant, e.notification_id, e.seq, e.at, e.type, e.from_status, e.to_status, e.attempt, e.token, e.worker, e.started_at,
    e.provider, e.outcome, e.error, e.latency_ms, e.cost, e.detail, e.engine
  from carillon.events e;

-- Numbers come in blocks: what a commit accepts has numbers that follow each other, whoever else accepts meanwhile, so that an engine can have it as
-- one entry. A bigint has room for them, and so has a number of JavaScript: for 70 years of a thousand commits a second.
alter sequence carillon.acceptance increment by 4096;
-- The greatest that anybody has by now.
create function carillon.last_seq() returns bigint
language sql volatile as 'select last_value + 4095 from carillon.acceptance';

-- `engines` are those that whoever calls hands over to, after the commit: what goes by one of them is in `handed`. `stretches` says where `rows` will be in the
-- record: in the lane p of tenant t from the id a to the id b, which are among the rows from m to n, counted from 0. Who names none offers in PostgreSQL.
drop function carillon.accept(json, boolean, integer, boolean);
create function carillon.accept(rows json, has_keys boolean, patience_ms integer default null, has_regions boolean default false,
  engines text[] default null, stretches json default null,
  out accepted_at timestamptz, out replays json, out held json, out outside json, out handed json)
language plpgsql as $$
declare
  -- Without those that are left out. Where a row stands among all of them says what its number is.
  asked json := rows;
  left_out uuid[] := '{}';
  kept_out uuid[] := '{}';
  taken uuid[] := '{}';
  regions jsonb;
  is_told boolean;
  to_engine text;
  commit_number bigint;
  block bigint;
  handed_stretches carillon.stretch[];
begin
  accepted_at := carillon.now();
  if engines is not null and stretches is not null then
    to_engine := carillon.queue_engine(engines);
    if to_engine is not null then commit_number := nextval('carillon.handoff') * 8; end if;
  end if;
  if has_regions then
    regions := carillon.queue_regions(rows, patience_ms);
    outside := (select json_agg(i) from jsonb_each(regions) as r(i, number) where number = 'null');
    if outside is not null then
      left_out := array(select i::uuid from jsonb_each(regions) as r(i, number) where number = 'null');
      asked := (select coalesce(json_agg(r), '[]') from json_array_elements(rows) as r where (regions -> (r ->> 'i') = 'null') is not true);
    end if;
  end if;
  if has_keys then
    if patience_ms is null then
      perform carillon.take_keys(asked, accepted_at);
    else
      kept_out := carillon.try_keys(asked, accepted_at, patience_ms);
      if kept_out <> '{}' then held := array_to_json(kept_out); end if;
    end if;

    -- A statement of its own: its snapshot sees the key that a racing transaction has just committed.
    taken := array(
      select x.i from json_to_recordset(asked) as x(i uuid, t integer, k text)
      join carillon.idempotency key on key.tenant = x.t and key.key = x.k
      where key.id <> x.i and x.i <> all (kept_out));
  end if;

  -- Not before whatever had to be waited for: who comes later is to have greater numbers.
  block := nextval('carillon.acceptance');
  if to_engine is not null then
    handed_stretches := array(
      -- Beyond the block a number says no more than that it is greater.
      select row(s.p, s.t, s.a, s.b, block + least(s.m, 4096), case when s.n < 4096 then block + s.n else 9223372036854775807 end)::carillon.stretch
      from json_to_recordset(stretches) as s(p smallint, t integer, a uuid, b uuid, m integer, n integer));
  end if;
  -- Only the narrow columns travel on to the queue.
  with stored as (
    insert into carillon.notifications as n (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request, pool, handoff)
    select t, i, case when nth <= 4096 then block + nth - 1 else nextval('carillon.acceptance') end,
      c, p, u, accept.accepted_at, d, e, r,
      carillon.queue_pool(c, case when has_regions then coalesce((regions ->> i::text)::smallint, 0) else 0 end::smallint),
      case when d > accept.accepted_at is not true and t > 0 then commit_number + p end
    from rows from (json_to_recordset(rows) as (i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json))
      with ordinality as x(i, t, c, p, u, d, e, r, nth)
    where x.i <> all (taken || kept_out || left_out)
    returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at, n.pool, n.handoff, n.channel
  ), offered as (
    insert into carillon.queue_later (due_at, priority, seq, tenant, id, expires_at, pool)
    select due_at, priority, seq, tenant, id, expires_at, pool from stored where due_at > accept.accepted_at
  ), offered_now as (
    insert into carillon.queue_now (priority, seq, tenant, id, expires_at, pool)
    select priority, seq, tenant, id, expires_at, pool from stored
    where due_at > accept.accepted_at is not true and stored.handoff is null
  ), handing as (
    -- Of a column that is the same for all, and of numbers that follow each other, the first says it.
    insert into carillon.queue_handed (number, engine, priority, first_expiry, done, seqs, tenants, pools, stretches)
    select g.handoff, to_engine, g.priority, g.first_expiry, repeat('0', g.size)::bit varying,
      case when g.last_seq - g.first_seq = g.size - 1 then array[g.first_seq]
        else array(select s.seq from stored s where s.handoff = g.handoff order by s.seq) end,
      case when g.first_tenant = g.last_tenant then array[g.first_tenant]
        else array(select s.tenant from stored s where s.handoff = g.handoff order by s.seq) end,
      case when g.first_pool = g.last_pool then array[g.first_pool]
        else array(select s.pool from stored s where s.handoff = g.handoff order by s.seq) end,
      array(select s from unnest(handed_stretches) s where s.priority = g.priority)
    from (
      select s.handoff, s.priority, count(*)::integer as size, min(s.expires_at) as first_expiry, min(s.seq) as first_seq, max(s.seq) as last_seq,
        min(s.tenant) as first_tenant, max(s.tenant) as last_tenant, min(s.pool) as first_pool, max(s.pool) as last_pool
      from stored s where s.handoff is not null group by s.handoff, s.priority
    ) g
    returning number, engine, priority as rank, length(done) as size, seqs, tenants, pools
  ), counted as materialized (
    select s.tenant, s.channel, s.priority, count(*) from stored s where s.tenant > 0 group by 1, 2, 3
  )
  select carillon.tell(array_agg(tenant), '{1}', array_agg(id), '{}', (
    select json_agg(json_build_array(json_build_array(c.tenant, c.channel, c.priority, '', 'accepted', '', '', ''), c.count, 0)) from counted c
    where (select carillon.worth_it(count(*), sum(k.count)) from counted k)
  )), (select json_agg(h) from handing h)
  into is_told, handed from stored where tenant > 0;

  if taken <> '{}' then
    select json_agg(json_build_object('i', x.i, 'id', key.id, 'same', key.hash = carillon.fingerprint(x.r),
      'status', r.status, 'acceptedAt', r.accepted_at))
    into replays
    from json_to_recordset(rows) as x(i uuid, t integer, k text, r json)
    join carillon.idempotency key on key.tenant = x.t and key.key = x.k
    left join carillon.records r on r.tenant = key.tenant and r.id = key.id
    where x.i = any (taken);
  end if;
end
$$;

drop function carillon.accept_calling(json, boolean, integer, boolean);
create function carillon.accept_calling(rows json, has_keys boolean, patience_ms integer, has_regions boolean, engines text[] default null, stretches json default null,
  out accepted_at timestamptz, out replays json, out held json, out outside json, out handed json)
language plpgsql as $$
declare
  unstored uuid[];
begin
  select a.accepted_at, a.replays, a.held, a.outside, a.handed into accepted_at, replays, held, outside, handed
  from carillon.accept(rows, has_keys, patience_ms, has_regions, engines, stretches) a;
  unstored := array(
    select (x ->> 'i')::uuid from json_array_elements(coalesce(replays, '[]')) as x
    union all select x::uuid from json_array_elements_text(coalesce(held, '[]')) as x
    union all select x::uuid from json_array_elements_text(coalesce(outside, '[]')) as x);
  with marked as (
    insert into carillon.callback_markers (id, tenant, url, policy, events)
    select x.i, x.t, x.r ->> 'callbackUrl', x.r ->> 'callbackPolicy',
      case when x.r -> 'callbackEvents' is not null then array(select json_array_elements_text(x.r -> 'callbackEvents')) end
    from json_to_recordset(rows) as x(i uuid, t integer, r json)
    where x.r ->> 'callbackUrl' is not null and x.i <> all (unstored)
    returning tenant
  )
  insert into carillon.callers (tenant)
  select distinct m.tenant from marked m where not exists (select from carillon.callers c where c.tenant = m.tenant);
end
$$;

create or replace function carillon.reschedule(of_tenant integer, of_id uuid, due timestamptz, expiry timestamptz, drops_expiry boolean,
  rank smallint, out status carillon.status, out is_done boolean, out refusal text, out due_at timestamptz,
  out expires_at timestamptz, out priority smallint)
language plpgsql as $$
declare
  n carillon.notifications;
  waiting record;
begin
  is_done := false;
  select * into n from carillon.notifications x where x.tenant = of_tenant and x.id = of_id for update;
  if not found then return; end if;
  n.pool := coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint));
  -- A claim may take it between two of these statements, and hand it back: look again.
  for look in 1..3 loop
    select r.status into status from carillon.records r where r.tenant = of_tenant and r.id = of_id;
    if status not in ('pending', 'queued') then return; end if;
    select * into waiting from carillon.queue_hold(of_tenant, n.pool, n.seq, n.handoff);
    exit when waiting.waits_as is not null;
  end loop;
  if waiting.waits_as is null then return; end if;

  due_at := coalesce(due, waiting.due_at);
  expires_at := case when not drops_expiry then coalesce(expiry, n.expires_at) end;
  priority := coalesce(rank, n.priority);
  if expires_at <= greatest(due_at, carillon.now()) then
    refusal := case when expires_at <= carillon.now() then 'must be in the future' else 'must be after scheduledFor' end;
    return;
  end if;

  status := carillon.queue_move(of_tenant, n.pool, n.seq, n.handoff, n.id, due_at, priority, expires_at);
  update carillon.notifications x set due_at = coalesce(due, x.due_at), expires_at = reschedule.expires_at,
    priority = reschedule.priority
  where x.tenant = of_tenant and x.id = of_id;
  insert into carillon.events (notification_id, tenant, type, from_status, to_status, detail)
  values (n.id, n.tenant, 'rescheduled', waiting.waits_as, status, json_strip_nulls(json_build_object(
    'scheduledFor', due, 'expiresAt', expires_at,
    'priority', (array['urgent', 'high', 'normal', 'low'])[priority + 1])));
  is_done := true;
end
$$;

create or replace function carillon.is_over() returns text
language sql immutable as $$
  select 'x.id < carillon.first_id($5) and x.accepted_at <= $5 and not carillon.queue_has(x.tenant,
    coalesce(x.pool, carillon.queue_pool(x.channel, 0::smallint)), x.seq, x.handoff)'
$$;

create or replace function carillon.delete_archived(part text, of_ids uuid[], of_tenants integer[], of_seqs bigint[]) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  gone uuid[];
begin
  execute format('lock table only carillon.%I in share row exclusive mode', 'events_' || part);
  execute format('select array(select n.id from unnest($1, $2, $3) as a(tenant, id, seq)
      join carillon.%I n on n.tenant = a.tenant and n.id = a.id
      where not carillon.queue_has(n.tenant, coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint)), n.seq, n.handoff)
        and a.seq = coalesce((select max(e.seq) from carillon.%I e where e.notification_id = a.id), 0)
      for update of n skip locked)', 'notifications_' || part, 'events_' || part) into gone using of_tenants, of_ids, of_seqs;
  execute format('delete from carillon.%I where (tenant, id) in (select a.tenant, a.id from unnest($1, $2) as a(tenant, id)
      where a.id = any ($3))', 'notifications_' || part) using of_tenants, of_ids, gone;
  execute format('delete from carillon.%I where notification_id = any ($1)', 'events_' || part) using gone;
  delete from carillon.archive_stragglers s where s.week = part and s.id = any (gone);
  return cardinality(gone);
end
$$;
