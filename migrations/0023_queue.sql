-- The queue keeps its tables to itself: `ready`, `later` and `claims` are named by what is called queue_…, by their triggers and
-- by the views `schedule` and `leased`, by nothing else. Whoever writes or reads the record asks those, in its own statement and
-- transaction. An engine that keeps what waits elsewhere brings its own in their place.

-- What waits for its time is no schedule: that is what fires again and again.
alter table carillon.schedule rename to later;
alter table carillon.later rename constraint schedule_pkey to later_pkey;
alter index carillon.schedule_by_due rename to later_by_due;
alter index carillon.schedule_expiring rename to later_expiring;
alter trigger schedule_insert_hint on carillon.later rename to later_insert_hint;
alter trigger schedule_update_hint on carillon.later rename to later_update_hint;

-- For replicas of 0.2.0, which lock, insert and delete here. They name rows by their ctid, which a view has only as a column.
create view carillon.schedule as
  select seq, due_at, priority, tenant, id, attempt, expires_at, ctid from carillon.later;

-- Pending until its time, and queued from then on: nobody has to write that down.
create or replace function carillon.waits_as(due_at timestamptz) returns carillon.status language sql stable as $$
  select case when due_at <= carillon.now() then 'queued' else 'pending' end::carillon.status
$$;

-- To offer is to insert here, what may be claimed at once and what waits for its time, each notification into one of them and only
-- while it is in neither and held by nobody. Views, because PostgreSQL puts the table in their place: acceptance stays one statement. A
-- function that takes arrays made it cost 4 % more.
create view carillon.queue_now as select priority, seq, tenant, id, expires_at from carillon.ready;
create view carillon.queue_later as select due_at, priority, seq, tenant, id, expires_at from carillon.later;

-- All that is in the queue, claimed or not. One snapshot sees each once.
create view carillon.queue_entries as
  select seq, tenant, id from carillon.ready
  union all select seq, tenant, id from carillon.later
  union all select seq, tenant, id from carillon.leased;

-- Where the queue has it: processing, or pending and queued as it waits for its time or did. Null where the queue does not have it or only
-- in a lane: the record knows which. PostgreSQL puts the body in the place of the call, as it is read for thousands at a time.
create function carillon.queue_standing(of_seq bigint) returns table (status carillon.status)
language sql stable as $$
  select case
    when exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0) then 'processing'::carillon.status
    else (select carillon.waits_as(l.due_at) from carillon.later l where l.seq = of_seq)
  end
$$;

create function carillon.queue_has(of_seq bigint) returns boolean
language sql stable as $$
  select exists (select from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq)
    or exists (select from carillon.later l where l.seq = of_seq)
    or exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0)
$$;

-- Keeps one that waits from being claimed until the transaction ends. All null where it does not wait: somebody has taken it up.
create function carillon.queue_hold(of_seq bigint, out waits_as carillon.status, out due_at timestamptz)
language plpgsql as $$
begin
  select carillon.waits_as(l.due_at), l.due_at into waits_as, due_at from carillon.later l where l.seq = of_seq for update;
  if found then return; end if;
  select 'queued' into waits_as from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq for update;
end
$$;

-- Another time, lane and expiry for one that waits; what is null is none. Null where it does not wait, and then nothing is changed.
create function carillon.queue_move(of_seq bigint, due timestamptz, rank smallint, expiry timestamptz) returns carillon.status
language plpgsql as $$
declare
  waiting record;
begin
  with from_later as (
    delete from carillon.later l where l.seq = of_seq returning l.tenant, l.id, l.attempt
  ), from_ready as (
    delete from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq returning r.tenant, r.id, r.attempt
  )
  select * into waiting from (table from_later union all table from_ready) x;
  if not found then return null; end if;
  if due > carillon.now() then
    insert into carillon.later (seq, due_at, priority, tenant, id, attempt, expires_at)
    values (of_seq, due, rank, waiting.tenant, waiting.id, waiting.attempt, expiry);
    return 'pending';
  end if;
  insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
  values (rank, of_seq, waiting.tenant, waiting.id, waiting.attempt, expiry);
  return 'queued';
end
$$;

-- Lanes of which nothing is claimed.
create table carillon.queue_pauses (
  priority  smallint primary key check (priority between 0 and 3),
  reason    text not null,
  paused_at timestamptz not null default carillon.now()
);

-- From here on: the record, which asks the queue.

create or replace view carillon.records as
  select n.*, coalesce(
    (select q.status from carillon.queue_standing(n.seq) q),
    nullif((select e.to_status from carillon.events e where e.notification_id = n.id order by e.at desc limit 1), 'pending'),
    'queued') as status
  from carillon.notifications n;

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
    insert into carillon.notifications as n (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request)
    select t, i, nextval('carillon.acceptance'), c, p, u, accept.accepted_at, d, e, r
    from json_to_recordset(rows) as x(i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json)
    where x.i <> all (taken || kept_out)
    returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at
  ), offered as (
    insert into carillon.queue_later (due_at, priority, seq, tenant, id, expires_at)
    select due_at, priority, seq, tenant, id, expires_at from stored where due_at > accept.accepted_at
  )
  insert into carillon.queue_now (priority, seq, tenant, id, expires_at)
  select priority, seq, tenant, id, expires_at from stored where due_at > accept.accepted_at is not true;

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
      select r.id, r.seq, r.priority, r.expires_at, r.status from carillon.records r
      where r.tenant = of_tenant and r.id = any (ids) and r.status in ('failed', 'ambiguous', 'expired', 'cancelled')
    ), offered as (
      insert into carillon.queue_now (priority, seq, tenant, id, expires_at)
      select e.priority, e.seq, of_tenant, e.id, case when e.expires_at > carillon.now() then e.expires_at end from ended e
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
    select * into waiting from carillon.queue_hold(n.seq);
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

  status := carillon.queue_move(n.seq, due_at, priority, expires_at);
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

create or replace function carillon.drop_week(week text) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
declare
  starts constant timestamptz := to_date(week, 'YYYYMMDD')::timestamp at time zone 'UTC';
  first constant uuid := carillon.first_id(starts);
  last constant uuid := carillon.first_id(starts + interval '7 days');
begin
  for look in 1..2 loop
    if exists (select from carillon.queue_entries where id >= first and id < last) then return false; end if;
    if look = 1 then execute format('lock table only carillon.%I in exclusive mode', 'notifications_' || week); end if;
  end loop;
  execute format('drop table carillon.%I, carillon.%I', 'notifications_' || week, 'events_' || week);
  return true;
end
$$;

create or replace function carillon.thin_out(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql as $$
declare
  is_over constant text := 'n.id < carillon.first_id($2) and n.accepted_at <= $2 and not carillon.queue_has(n.seq)';
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

drop function carillon.is_waiting(bigint);
