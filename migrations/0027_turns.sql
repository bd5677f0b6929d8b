-- Turns between tenants within a lane, and what a worker takes: who waits where is part of the key that a claim goes by.
--
-- What waits in a lane for one tenant, one channel and one region is a flow. A claim finds the flows by one probe each, however long
-- they are; what it may not take it passes flow by flow and never row by row.

-- How many turns a tenant has within a lane while others have one. Nearly all have one: a claim asks for those that have more.
alter table carillon.tenants add weight smallint not null default 1 check (weight between 1 and 100);
create index tenants_of_weight on carillon.tenants (id) include (weight) where weight <> 1;

-- Places that requests ask to be sent from, each by the first request that names it; `tenant` is who did.
create table carillon.regions (
  id      smallint primary key check (id between 1 and 2000),
  name    text not null unique,
  tenant  integer not null references carillon.tenants,
  made_at timestamptz not null default carillon.now()
);

-- What a worker can tell apart before it takes something: region and channel in one small number. The numbers of the channels are
-- their places in src/domain/notification.ts. 0 is unknown, written by replicas of 0.3.0, and every worker takes it.
create function carillon.queue_pool(channel text, region smallint) returns smallint
language sql immutable parallel safe as $$
  select (region * 16
    + coalesce(array_position(array['email', 'push', 'sms', 'slack', 'webhook', 'inbox', 'console', 'file'], channel), 0))::smallint
$$;

-- Null for what was accepted before.
alter table carillon.notifications add pool smallint;

alter table carillon.ready add pool smallint not null default 0;

-- By time alone as long as what is due is little; by flow where it is too much for one claim.
alter table carillon.later add pool smallint not null default 0;
create index later_by_flow on carillon.later (priority, tenant, pool, due_at, seq);

-- Of what is paused nothing is claimed: a lane, a channel or a tenant. Providers are for whoever sends.
create table carillon.pauses (
  kind      text not null check (kind in ('lane', 'channel', 'tenant', 'provider')),
  name      text not null,
  reason    text not null,
  until     timestamptz,
  paused_at timestamptz not null default carillon.now(),
  paused_by text,
  primary key (kind, name)
);
insert into carillon.pauses (kind, name, reason, paused_at)
select 'lane', (array['urgent', 'high', 'normal', 'low'])[priority + 1], reason, paused_at from carillon.queue_pauses;
drop table carillon.queue_pauses;

-- For replicas of 0.3.0, which know lanes only.
create view carillon.queue_pauses as
  select (array_position(array['urgent', 'high', 'normal', 'low'], name) - 1)::smallint as priority, reason, paused_at
  from carillon.pauses where kind = 'lane' and (until is null or until > carillon.now());

create or replace view carillon.queue_now as select priority, seq, tenant, id, expires_at, pool from carillon.ready;
create or replace view carillon.queue_later as select due_at, priority, seq, tenant, id, expires_at, pool from carillon.later;

-- Whoever asks says of which notification: its tenant, pool and number. Where replicas of 0.3.0 have put it back, its pool is 0. The
-- functions of the same names that take a number alone serve calls that are under way while the schema changes.
create function carillon.queue_has(of_tenant integer, of_pool smallint, of_seq bigint) returns boolean
language sql stable as $$
  select exists (select from carillon.ready r where r.priority in (0, 1, 2, 3) and r.tenant = of_tenant
      and r.pool in (0, of_pool) and r.seq = of_seq)
    or exists (select from carillon.later l where l.seq = of_seq)
    or exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0)
$$;

create function carillon.queue_hold(of_tenant integer, of_pool smallint, of_seq bigint,
  out waits_as carillon.status, out due_at timestamptz)
language plpgsql as $$
begin
  select carillon.waits_as(l.due_at), l.due_at into waits_as, due_at from carillon.later l where l.seq = of_seq for update;
  if found then return; end if;
  select 'queued' into waits_as from carillon.ready r where r.priority in (0, 1, 2, 3) and r.tenant = of_tenant
    and r.pool in (0, of_pool) and r.seq = of_seq for update;
end
$$;

create function carillon.queue_move(of_tenant integer, of_pool smallint, of_seq bigint, due timestamptz, rank smallint,
  expiry timestamptz) returns carillon.status
language plpgsql as $$
declare
  waiting record;
begin
  with from_later as (
    delete from carillon.later l where l.seq = of_seq returning l.id, l.attempt, l.pool
  ), from_ready as (
    delete from carillon.ready r where r.priority in (0, 1, 2, 3) and r.tenant = of_tenant and r.pool in (0, of_pool)
      and r.seq = of_seq returning r.id, r.attempt, r.pool
  )
  select * into waiting from (table from_later union all table from_ready) x;
  if not found then return null; end if;
  if due > carillon.now() then
    insert into carillon.later (seq, due_at, priority, tenant, id, attempt, expires_at, pool)
    values (of_seq, due, rank, of_tenant, waiting.id, waiting.attempt, expiry, waiting.pool);
    return 'pending';
  end if;
  insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at, pool)
  values (rank, of_seq, of_tenant, waiting.id, waiting.attempt, expiry, waiting.pool);
  return 'queued';
end
$$;

-- From here on: the record, which says of which flow each is.

create or replace function carillon.accept(rows json, has_keys boolean, patience_ms integer default null,
  out accepted_at timestamptz, out replays json, out held json)
language plpgsql as $$
declare
  kept_out uuid[] := '{}';
  taken uuid[] := '{}';
begin
  accepted_at := carillon.now();
  if has_keys then
    if patience_ms is null then
      perform carillon.take_keys(rows, accepted_at);
    else
      kept_out := carillon.try_keys(rows, accepted_at, patience_ms);
      if kept_out <> '{}' then held := array_to_json(kept_out); end if;
    end if;

    -- A statement of its own: its snapshot sees the key that a racing transaction has just committed.
    taken := array(
      select x.i from json_to_recordset(rows) as x(i uuid, t integer, k text)
      join carillon.idempotency key on key.tenant = x.t and key.key = x.k
      where key.id <> x.i and x.i <> all (kept_out));
  end if;

  -- Only the narrow columns travel on to the queue.
  with stored as (
    insert into carillon.notifications as n (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request, pool)
    select t, i, nextval('carillon.acceptance'), c, p, u, accept.accepted_at, d, e, r, carillon.queue_pool(c, 0::smallint)
    from json_to_recordset(rows) as x(i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json)
    where x.i <> all (taken || kept_out)
    returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at, n.pool
  ), offered as (
    insert into carillon.queue_later (due_at, priority, seq, tenant, id, expires_at, pool)
    select due_at, priority, seq, tenant, id, expires_at, pool from stored where due_at > accept.accepted_at
  )
  insert into carillon.queue_now (priority, seq, tenant, id, expires_at, pool)
  select priority, seq, tenant, id, expires_at, pool from stored where due_at > accept.accepted_at is not true;

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

create or replace function carillon.retry(of_tenant integer, ids uuid[]) returns setof uuid
language plpgsql as $$
begin
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = any (ids) order by n.id for update;
  return query
    with ended as materialized (
      select r.id, r.seq, r.priority, r.expires_at, r.status,
        (select coalesce(n.pool, 0) from carillon.notifications n where n.tenant = of_tenant and n.id = r.id) as pool
      from carillon.records r
      where r.tenant = of_tenant and r.id = any (ids) and r.status in ('failed', 'ambiguous', 'expired', 'cancelled')
    ), offered as (
      insert into carillon.queue_now (priority, seq, tenant, id, expires_at, pool)
      select e.priority, e.seq, of_tenant, e.id, case when e.expires_at > carillon.now() then e.expires_at end, e.pool from ended e
    )
    insert into carillon.events (notification_id, tenant, type, from_status, to_status)
    select e.id, of_tenant, 'retried', e.status, 'queued' from ended e
    returning notification_id;
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
  -- A claim may take it between two of these statements, and hand it back: look again.
  for look in 1..3 loop
    select r.status into status from carillon.records r where r.tenant = of_tenant and r.id = of_id;
    if status not in ('pending', 'queued') then return; end if;
    select * into waiting from carillon.queue_hold(of_tenant, n.pool, n.seq);
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

  status := carillon.queue_move(of_tenant, n.pool, n.seq, due_at, priority, expires_at);
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

create or replace function carillon.thin_out(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql as $$
declare
  is_over constant text :=
    'n.id < carillon.first_id($2) and n.accepted_at <= $2 and not carillon.queue_has(n.tenant, n.pool, n.seq)';
  places tid[];
begin
  deleted := 0;
  execute format('with next as materialized (
      select n.ctid as place, n.* from carillon.%I n where (n.tenant, n.id) > ($1, $3) order by n.tenant, n.id limit $4
    )
    select array(select n.place from next n where %s), l.tenant, l.id
    from (select tenant, id from next order by tenant desc, id desc limit 1) l', 'notifications_' || part, is_over)
  into places, last_tenant, last_id using after_tenant, before, after_id, most;
  if cardinality(places) > 0 then
    execute format('select array(select n.ctid from carillon.%I n where n.ctid = any ($1) for update skip locked)',
      'notifications_' || part) into places using places;
    execute format('with gone as (delete from carillon.%I n where n.ctid = any ($1) and %s returning n.id),
        told as (delete from carillon.%I where notification_id = any (array(select id from gone)))
      select count(*) from gone', 'notifications_' || part, is_over, 'events_' || part)
    into deleted using places, before;
  end if;
end
$$;
