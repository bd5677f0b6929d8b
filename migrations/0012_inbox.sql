-- The live inbox: what each user was told, numbered without gaps.

-- One row per user who was ever told something. Its lock gives out the numbers of the items, so that of two
-- transactions the one with the lower numbers is visible first: a reader who has seen seq has seen everything before it.
--
-- epoch tells this numbering from an earlier or a later one of the same user. Items up to forgotten_seq may be gone: who
-- has read less than that cannot resume. Up to acked_seq, readers have said that they have everything.
-- changed_xid is the transaction that changed the inbox last; see carillon.changed_inboxes().
create table carillon.inboxes (
  tenant        integer not null references carillon.tenants,
  user_id       text not null,
  epoch         bigint not null default floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
  last_seq      bigint not null default 0,
  forgotten_seq bigint not null default 0,
  acked_seq     bigint not null default 0,
  changed_xid   xid8 not null default pg_current_xact_id(),
  changed_at    timestamptz not null default clock_timestamp(),
  primary key (tenant, user_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index inboxes_changed on carillon.inboxes (changed_xid);

create table carillon.inbox_items (
  tenant          integer not null,
  user_id         text not null,
  seq             bigint not null,
  notification_id uuid not null,
  category        text,
  title           text,
  body            text,
  data            json,
  link            text,
  created_at      timestamptz not null default clock_timestamp(),
  acked_at        timestamptz,
  delivered_at    timestamptz,
  read_at         timestamptz,
  archived_at     timestamptz,
  primary key (tenant, user_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.05);
-- A resend finds its item; ids are in order of acceptance, so the retention goes by it too.
create unique index inbox_items_of_notification on carillon.inbox_items (notification_id);
create index inbox_items_unread on carillon.inbox_items (tenant, user_id) where read_at is null and archived_at is null;
-- Acknowledged before the sender's own commit: these wait to become delivered.
create index inbox_items_acked on carillon.inbox_items (acked_at) where acked_at is not null and delivered_at is null;

-- Like the queue's, these statements were written for their indexes: a plan made while a table was empty must not read it from
-- end to end once it is full.

-- Stores many items in one statement, each notification's once. Each row: i notification, t tenant, u user, c category,
-- h title, b body, d data, l link. Answers with how many were new.
create function carillon.store_items(rows json) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  stored integer;
begin
  -- Inboxes are made and locked in the same order everywhere, so that two batches cannot deadlock.
  insert into carillon.inboxes (tenant, user_id)
  select distinct t, u from json_to_recordset(rows) as x(t integer, u text) order by t, u
  on conflict do nothing;
  perform from (select distinct t, u from json_to_recordset(rows) as x(t integer, u text) order by t, u) named
  cross join lateral (
    select from carillon.inboxes b where b.tenant = named.t and b.user_id = named.u for update
  ) locked;

  -- A statement of its own: its snapshot sees what those before us in the lock have committed.
  with given as materialized (
    select distinct on (x.i) x.* from rows from (json_to_recordset(rows) as (i uuid, t integer, u text, c text, h text,
      b text, d json, l text)) with ordinality as x(i, t, u, c, h, b, d, l, n)
    where not exists (select from carillon.inbox_items s where s.notification_id = x.i)
    order by x.i, x.n
  ), fresh as materialized (
    select t, u, count(*) as items, array_agg(i order by n) as i, array_agg(c order by n) as c, array_agg(h order by n) as h,
      array_agg(b order by n) as b, array_agg(d order by n) as d, array_agg(l order by n) as l
    from given group by t, u
  ), counted as (
    update carillon.inboxes x set last_seq = x.last_seq + f.items, changed_xid = pg_current_xact_id(),
      changed_at = clock_timestamp()
    from fresh f where x.tenant = f.t and x.user_id = f.u
    returning f.*, x.last_seq - f.items as before
  ), items as (
    insert into carillon.inbox_items (tenant, user_id, seq, notification_id, category, title, body, data, link)
    select t, u, before + nth, y.i, y.c, y.h, y.b, y.d, y.l
    from counted, unnest(counted.i, counted.c, counted.h, counted.b, counted.d, counted.l) with ordinality
      as y(i, c, h, b, d, l, nth)
    returning 1
  )
  select count(*) into stored from items;
  return stored;
end
$$;

-- Which inboxes changed since an earlier look, exactly: a transaction that was under way at that look is found at the first
-- look after its commit, however late. An index on a time or a number could not promise that. `seen` is the snapshot that the
-- earlier look answered with; null asks for the snapshot alone. Transactions to come are left out, so that a database that was
-- restored into another server, where numbers begin anew, costs no more than others.
create function carillon.changed_inboxes(seen pg_snapshot, out snapshot pg_snapshot, out is_older boolean, out changed json)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  snapshot := pg_current_snapshot();
  is_older := coalesce(pg_snapshot_xmax(snapshot) < pg_snapshot_xmax(seen), false);
  select json_agg(json_build_array(x.tenant, x.user_id)) into changed from (
    select b.tenant, b.user_id from carillon.inboxes b
    where b.changed_xid >= pg_snapshot_xmax(seen) and b.changed_xid < pg_snapshot_xmax(snapshot)
    union
    select b.tenant, b.user_id from carillon.inboxes b
    where b.changed_xid = any (array(select pg_snapshot_xip(seen)))
  ) x;
end
$$;

-- Marks items of one user, and answers with the notifications of those that changed. The inbox is locked first, as everywhere.
create function carillon.mark_items(of_tenant integer, of_user text, verb text, ids uuid[], of_category text, up_to bigint)
returns uuid[]
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  box carillon.inboxes;
  marked uuid[];
begin
  select * into box from carillon.inboxes b where b.tenant = of_tenant and b.user_id = of_user for update;
  if not found then return '{}'; end if;
  if verb = 'position' then
    -- Only what no earlier position covered.
    with m as (
      update carillon.inbox_items i set acked_at = clock_timestamp()
      where i.tenant = of_tenant and i.user_id = of_user and i.seq > box.acked_seq and i.seq <= least(up_to, box.last_seq)
        and i.acked_at is null returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
    update carillon.inboxes b set acked_seq = greatest(b.acked_seq, least(up_to, b.last_seq))
    where b.tenant = of_tenant and b.user_id = of_user and b.acked_seq < least(up_to, b.last_seq);
  elsif verb = 'ack' then
    with m as (
      update carillon.inbox_items i set acked_at = clock_timestamp()
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.acked_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'read' then
    with m as (
      update carillon.inbox_items i set read_at = clock_timestamp(), acked_at = coalesce(i.acked_at, clock_timestamp())
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.read_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'archive' then
    with m as (
      update carillon.inbox_items i set archived_at = clock_timestamp(), acked_at = coalesce(i.acked_at, clock_timestamp())
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.archived_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'read-all' then
    with m as (
      update carillon.inbox_items i set read_at = clock_timestamp(), acked_at = coalesce(i.acked_at, clock_timestamp())
      where i.tenant = of_tenant and i.user_id = of_user and i.read_at is null and i.archived_at is null
        and (of_category is null or i.category = of_category)
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  else
    raise exception 'there is no verb %', verb;
  end if;
  -- Streams tell the count of what is unread; having arrived changes nothing about it.
  if marked is not null and verb not in ('position', 'ack') then
    update carillon.inboxes b set changed_xid = pg_current_xact_id(), changed_at = clock_timestamp()
    where b.tenant = of_tenant and b.user_id = of_user;
  end if;
  return coalesce(marked, '{}');
end
$$;

-- Moves notifications whose items were acknowledged from sent to delivered, and answers with how many, and how many wait: a
-- reader may acknowledge faster than the sender commits. What is not sent yet stays for the next call. Without ids it is about
-- those that have waited longest.
create function carillon.deliver_acked(ids uuid[], most integer, out moved integer, out waiting integer)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  ids := coalesce(ids, array(
    select i.notification_id from carillon.inbox_items i
    where i.acked_at is not null and i.delivered_at is null and i.acked_at > clock_timestamp() - interval '1 day'
    order by i.acked_at limit most));
  with acked as materialized (
    select i.ctid as place, i.tenant, i.notification_id, i.created_at, i.acked_at from carillon.inbox_items i
    where i.notification_id = any (ids) and i.acked_at is not null and i.delivered_at is null
    order by i.notification_id for update skip locked
  ), standing as materialized (
    select a.*, (select r.status from carillon.records r where r.tenant = a.tenant and r.id = a.notification_id) as status
    from acked a
  ), done as (
    update carillon.inbox_items i set delivered_at = s.acked_at from standing s
    where i.ctid = s.place and i.delivered_at is null and s.status in ('sent', 'ambiguous')
    returning s.*
  ), told as (
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, provider, latency_ms, detail)
    select notification_id, tenant, 'delivered', status, 'delivered', 'inbox',
      extract(epoch from acked_at - created_at) * 1000, json_build_object('ackedAt', acked_at)
    from done
    returning 1
  )
  select (select count(*) from told), (select count(*) from acked) - (select count(*) from told) into moved, waiting;
end
$$;

-- Retention: items whose time is over, a batch at a time, and inboxes that nobody used since. Whoever has not read
-- what goes is told to load the list anew.
create function carillon.forget_items(before timestamptz, most integer) returns integer
language plpgsql as $$
declare
  box record;
  last bigint;
  deleted integer;
  forgotten integer := 0;
begin
  for box in
    select distinct x.tenant, x.user_id from (
      select i.tenant, i.user_id from carillon.inbox_items i
      where i.notification_id < carillon.first_id(before) and i.created_at <= before order by i.notification_id limit most
    ) x order by x.tenant, x.user_id
  loop
    perform from carillon.inboxes b where b.tenant = box.tenant and b.user_id = box.user_id for update;
    with gone as (
      delete from carillon.inbox_items i where i.tenant = box.tenant and i.user_id = box.user_id
        and i.notification_id < carillon.first_id(before) and i.created_at <= before
      returning i.seq
    )
    select max(seq), count(*) into last, deleted from gone;
    update carillon.inboxes b set forgotten_seq = greatest(b.forgotten_seq, last)
    where b.tenant = box.tenant and b.user_id = box.user_id;
    forgotten := forgotten + deleted;
  end loop;
  if forgotten = 0 then
    -- An inbox that is told something meanwhile has a later change by the time its lock is free.
    delete from carillon.inboxes b where b.changed_at <= before and b.ctid = any (array(
      select x.ctid from carillon.inboxes x where x.changed_at <= before
        and not exists (select from carillon.inbox_items i where i.tenant = x.tenant and i.user_id = x.user_id) limit most));
  end if;
  return forgotten;
end
$$;

-- Secrets that we make ourselves, such as the one behind subscribers' tokens. Made at first use.
create table carillon.secrets (
  name       text primary key,
  secret     bytea not null check (length(secret) >= 32),
  created_at timestamptz not null default now()
);
