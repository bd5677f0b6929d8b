-- The feed: what happened to notifications, in an order that can be followed. The record tells it by notification; whoever follows reads
-- this, and fetches the rest from the record.
--
--   accept() ──► tell() ──► feed        events ── trigger ──► tell(): every other path, also that of replicas which know of no feed
--
-- A row for every statement that wrote facts, with arrays of what it wrote. PostgreSQL does not number its commits, so nobody can read rows
-- in their order. A row carries the id of a transaction, its key, and a reader takes rows whose key lies below its horizon,
-- pg_snapshot_xmin(pg_current_snapshot()): every transaction below it has ended, and what begins later writes above it.


-- Epochs --------------------------------------------------------------------------------------------------------------------

-- Ids of transactions begin anew where a dump is restored into another cluster, and go back where a standby takes over that had not caught
-- up. What was written before and after are two epochs; a position of one means nothing in the other. Writers know the cluster alone, and
-- wait for nobody: the first reader numbers the epoch. While the server runs that was started at `started_at` it is the same
-- cluster, so that its control file need not be read for every statement.
--
-- Retention has taken everything up to the forgotten row, and what happened before that instant.
create table carillon.epochs (
  epoch         integer generated always as identity primary key,
  cluster       bigint not null unique,
  started_at    timestamptz not null,
  began_at      timestamptz not null default carillon.now(),
  forgotten_key bigint not null default 0,
  forgotten_seq bigint not null default 0,
  forgotten_at  timestamptz
);

-- Its identifier and its timeline. The control file would tell of a new timeline only after the next checkpoint.
create function carillon.read_cluster() returns bigint
language sql volatile as $$
  select hashtextextended(c.system_identifier || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8), 0) from pg_control_system() c
$$;

-- Numbers the epoch that this is, if nobody has.
create function carillon.this_epoch() returns integer
language sql volatile as $$
  insert into carillon.epochs (cluster, started_at) values (carillon.read_cluster(), pg_postmaster_start_time())
  on conflict (cluster) do update set started_at = excluded.started_at
  returning epoch
$$;


-- Rows ----------------------------------------------------------------------------------------------------------------------

create sequence carillon.feed_seq as bigint;

-- `tenants` and `types` have one element where all facts have the same, `numbers` has none where all are acceptances. A type is a place in the list of
-- src/domain/fact.ts, a number is events.seq. `at` is what the facts' own rows say, so that they lead here. `floor` is the writer's horizon:
-- what is told later has no smaller key.
--
-- Compressed, 500 facts took 6 bytes less of the log and 1 µs more of the processor each.
create table carillon.feed (
  cluster bigint not null,
  key     bigint not null,
  seq     bigint not null default nextval('carillon.feed_seq'),
  floor   bigint not null,
  at      timestamptz not null default carillon.now(),
  size    integer not null,
  tenants integer[] not null,
  types   smallint[] not null,
  ids     uuid[] not null,
  numbers bigint[] not null
) partition by range (at);
alter table carillon.feed alter tenants set storage external, alter types set storage external, alter ids set storage external,
  alter numbers set storage external;
create index feed_order on carillon.feed (cluster, key, seq);
create index feed_at on carillon.feed (at);

-- A partition a day. The default partition catches what a clock tells that is far off.
create table carillon.feed_default partition of carillon.feed default;

create function carillon.make_feed_day(at timestamptz) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
declare
  day constant timestamp := date_trunc('day', at at time zone 'UTC');
  starts constant timestamptz := day at time zone 'UTC';
  ends constant timestamptz := (day + interval '1 day') at time zone 'UTC';
  child constant text := 'feed' || to_char(day, '"_"YYYYMMDD');
begin
  if to_regclass('carillon.' || child) is not null
    or exists (select from carillon.feed_default f where f.at >= starts and f.at < ends) then return false; end if;
  execute format('create table carillon.%I (like carillon.feed including all)', child);
  execute format('alter table carillon.feed attach partition carillon.%I for values from (%L) to (%L)', child, starts, ends);
  return true;
end
$$;
select carillon.make_feed_day(carillon.now() + day * interval '1 day') from generate_series(-1, 8) as day;


-- Telling -------------------------------------------------------------------------------------------------------------------

-- As src/domain/fact.ts has it.
create function carillon.fact_type(event text, becomes carillon.status) returns smallint
language sql immutable parallel safe as $$
  select (case becomes
    when 'sent' then 4 when 'delivered' then 5 when 'failed' then 6 when 'expired' then 7 when 'suppressed' then 8
    when 'ambiguous' then 9 when 'cancelled' then 10
    else case event when 'attempt' then 2 when 'postponed' then 3 when 'retried' then 11 when 'rescheduled' then 12
      when 'reminder.due' then 14 end
  end)::smallint
$$;

-- Writes a row of the feed; the one place that does. Answers whether there was something to tell.
--
-- The key is the greatest id of all transactions that have ended, or the writer's own if that is greater. Whoever writes about a notification
-- waited for the one who did before, or read what it wrote. That one has ended, so its key is no greater than this, even if it began
-- later: order within a notification is made here, and no reader has to mend it. The snapshot is one that was taken after all
-- waiting, as every statement of a volatile function takes its own.
create function carillon.tell(of_tenants integer[], of_types smallint[], of_ids uuid[], of_numbers bigint[]) returns boolean
language plpgsql volatile as $$
declare
  here constant bigint := (
    select e.cluster from carillon.epochs e where e.started_at = pg_postmaster_start_time() order by e.epoch desc limit 1);
begin
  if of_ids is null then return false; end if;
  insert into carillon.feed (cluster, key, floor, size, tenants, types, ids, numbers)
  values (coalesce(here, carillon.read_cluster()),
    greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1),
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint, cardinality(of_ids),
    case when of_tenants[1] = all (of_tenants) then of_tenants[1:1] else of_tenants end,
    case when of_types[1] = all (of_types) then of_types[1:1] else of_types end, of_ids, of_numbers);
  return true;
end
$$;

-- Rows below tenant 1 are our own messages about others: nobody follows them.
create function carillon.tell_events() returns trigger language plpgsql as $$
begin
  perform carillon.tell(array_agg(w.tenant), array_agg(carillon.fact_type(w.type, w.to_status)), array_agg(w.notification_id), array_agg(w.seq))
  from written w where w.tenant > 0;
  return null;
end
$$;
create trigger events_told after insert on carillon.events referencing new table as written
  for each statement execute function carillon.tell_events();

-- As before, and tells the feed.
create or replace function carillon.accept(rows json, has_keys boolean, patience_ms integer default null, has_regions boolean default false,
  out accepted_at timestamptz, out replays json, out held json, out outside json)
language plpgsql as $$
declare
  kept_out uuid[] := '{}';
  taken uuid[] := '{}';
  regions jsonb;
  is_told boolean;
begin
  accepted_at := carillon.now();
  if has_regions then
    regions := carillon.queue_regions(rows, patience_ms);
    outside := (select json_agg(i) from jsonb_each(regions) as r(i, number) where number = 'null');
    if outside is not null then
      rows := (select coalesce(json_agg(r), '[]') from json_array_elements(rows) as r where (regions -> (r ->> 'i') = 'null') is not true);
    end if;
  end if;
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
    select t, i, nextval('carillon.acceptance'), c, p, u, accept.accepted_at, d, e, r,
      carillon.queue_pool(c, case when has_regions then coalesce((regions ->> i::text)::smallint, 0) else 0 end::smallint)
    from json_to_recordset(rows) as x(i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json)
    where x.i <> all (taken || kept_out)
    returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at, n.pool
  ), offered as (
    insert into carillon.queue_later (due_at, priority, seq, tenant, id, expires_at, pool)
    select due_at, priority, seq, tenant, id, expires_at, pool from stored where due_at > accept.accepted_at
  ), offered_now as (
    insert into carillon.queue_now (priority, seq, tenant, id, expires_at, pool)
    select priority, seq, tenant, id, expires_at, pool from stored where due_at > accept.accepted_at is not true
  )
  select carillon.tell(array_agg(tenant), '{1}', array_agg(id), '{}') into is_told from stored where tenant > 0;

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

-- As before, and tells what was read. The record has no event of it: an item says when. Whoever reads everything is told a thousand at a time.
create or replace function carillon.mark_items(of_tenant integer, of_user text, verb text, ids uuid[], of_category text, up_to bigint)
returns uuid[]
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  box carillon.inboxes;
  marked uuid[];
  reached bigint;
begin
  select * into box from carillon.inboxes b where b.tenant = of_tenant and b.user_id = of_user for update;
  if not found then return '{}'; end if;
  if verb = 'position' then
    -- Only what no earlier position covered.
    with m as (
      update carillon.inbox_items i set acked_at = carillon.now()
      where i.tenant = of_tenant and i.user_id = of_user and i.seq = any (array(
        select s.seq from carillon.inbox_items s where s.tenant = of_tenant and s.user_id = of_user and s.seq > box.acked_seq
          and s.seq <= least(up_to, box.last_seq) and s.acked_at is null order by s.seq limit 1000))
      returning i.notification_id, i.seq
    ) select array_agg(notification_id), max(seq) into marked, reached from m;
    if cardinality(marked) = 1000 then up_to := reached; end if;
    update carillon.inboxes b set acked_seq = least(up_to, b.last_seq)
    where b.tenant = of_tenant and b.user_id = of_user and b.acked_seq < least(up_to, b.last_seq);
  elsif verb = 'ack' then
    with m as (
      update carillon.inbox_items i set acked_at = carillon.now()
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.acked_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'read' then
    with m as (
      update carillon.inbox_items i set read_at = carillon.now(), acked_at = coalesce(i.acked_at, carillon.now())
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.read_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'archive' then
    with m as (
      update carillon.inbox_items i set archived_at = carillon.now(), acked_at = coalesce(i.acked_at, carillon.now())
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.archived_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'read-all' then
    with m as (
      update carillon.inbox_items i set read_at = carillon.now(), acked_at = coalesce(i.acked_at, carillon.now())
      where i.tenant = of_tenant and i.user_id = of_user and i.seq = any (array(
        select s.seq from carillon.inbox_items s where s.tenant = of_tenant and s.user_id = of_user and s.read_at is null
          and s.archived_at is null and (of_category is null or s.category = of_category) limit 1000))
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  else
    raise exception 'there is no verb %', verb;
  end if;
  if verb in ('read', 'read-all') then
    perform carillon.tell(array[of_tenant], '{13}', marked, array(select nextval('carillon.event_seq') from unnest(marked)));
  end if;
  -- Streams tell the count of what is unread; having arrived changes nothing about it.
  if marked is not null and verb not in ('position', 'ack') then
    update carillon.inboxes b set changed_xid = pg_current_xact_id(), changed_at = carillon.now()
    where b.tenant = of_tenant and b.user_id = of_user;
  end if;
  return coalesce(marked, '{}');
end
$$;


-- Followers -----------------------------------------------------------------------------------------------------------------

-- How far those have come that follow from inside. Whoever acts on facts moves its position in the transaction that acts. `missed_at`: it was
-- so far behind that retention took what it had not read.
create table carillon.followers (
  name      text primary key,
  epoch     integer not null,
  key       bigint not null,
  seq       bigint not null,
  ordinal   integer not null,
  moved_at  timestamptz not null default carillon.now(),
  missed_at timestamptz
);

-- Drops a day of the feed, and notes how far that went in each epoch.
create function carillon.drop_feed_day(day text) returns void
language plpgsql set lock_timeout = '50ms' as $$
begin
  execute format('lock table only carillon.%I in exclusive mode', 'feed_' || day);
  execute format('update carillon.epochs e set forgotten_key = x.key, forgotten_seq = x.seq, forgotten_at = $1
    from (select o.epoch, l.key, l.seq from carillon.epochs o cross join lateral (
      select f.key, f.seq from carillon.%I f where f.cluster = o.cluster order by f.key desc, f.seq desc limit 1) l) x
    where e.epoch = x.epoch and (x.key, x.seq) > (e.forgotten_key, e.forgotten_seq)', 'feed_' || day)
  using (to_date(day, 'YYYYMMDD') + 1)::timestamp at time zone 'UTC';
  execute format('drop table carillon.%I', 'feed_' || day);
end
$$;

-- The same for what no day holds, so many rows at a time; answers with how many.
create function carillon.thin_feed(before timestamptz, most integer) returns integer
language plpgsql as $$
declare
  gone integer;
begin
  with old as (
    delete from carillon.feed_default f where f.ctid = any (array(
      select d.ctid from carillon.feed_default d where d.at < before order by d.at limit most for update skip locked))
    returning f.cluster, f.key, f.seq
  ), noted as (
    update carillon.epochs e set forgotten_key = x.key, forgotten_seq = x.seq, forgotten_at = before
    from (select distinct on (cluster) cluster, key, seq from old order by cluster, key desc, seq desc) x
    where e.cluster = x.cluster and (x.key, x.seq) > (e.forgotten_key, e.forgotten_seq)
  )
  select count(*) into gone from old;
  return gone;
end
$$;
