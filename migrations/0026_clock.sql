-- What is left goes by carillon.now() as well: ids, by which weeks are cut and retention goes, the rules of a request, inboxes, and when
-- something was made. The true clock stays for leases, leaders, heartbeats, limits, breakers, locks and the patience for a
-- key; and for an inbox's epoch, which is no time but must never be given out again.

alter table carillon.tenants alter created_at set default carillon.now();
alter table carillon.keys alter created_at set default carillon.now();
alter table carillon.secrets alter created_at set default carillon.now();
alter table carillon.template_versions alter created_at set default carillon.now();
alter table carillon.suppressions alter at set default carillon.now();
alter table carillon.devices alter created_at set default carillon.now(), alter updated_at set default carillon.now();
alter table carillon.credentials alter updated_at set default carillon.now();
alter table carillon.dev_messages alter at set default carillon.now();
alter table carillon.inboxes alter changed_at set default carillon.now();
alter table carillon.inbox_items alter created_at set default carillon.now();

-- In the order of the clock, which stands still while a statement runs: ids that one statement makes are in no order among themselves.
create or replace function carillon.new_id() returns uuid
language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send(floor(extract(epoch from carillon.now()) * 1000)::bigint) from 3)
    from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
$$;

create or replace function carillon.is_time_zone(name text) returns boolean
language plpgsql stable as $$
begin
  return timezone(name, carillon.now()) is not null;
exception when invalid_parameter_value then
  return false;
end
$$;

create or replace function carillon.faults(request jsonb) returns jsonb
language plpgsql stable as $$
declare
  contract constant jsonb := carillon.contract();
  shape constant text := contract -> 'request' -> 'properties' -> 'expiresAt' ->> 'pattern';
  channel constant text := request ->> 'channel';
  due_at timestamptz;
  expires_at timestamptz;
  found jsonb;
begin
  select jsonb_agg(jsonb_build_object('path', f.fault_path, 'message', f.message)) into found
  from carillon.unstorable(request) f;
  if octet_length(request::text) > 262144 then
    found := jsonb_build_array(jsonb_build_object('path', '', 'message', 'must not be larger than 262144 bytes'));
  end if;
  if found is not null then return found; end if;

  if request ->> 'scheduledFor' ~ shape then due_at := carillon.instant(request ->> 'scheduledFor'); end if;
  if request ->> 'expiresAt' ~ shape then expires_at := carillon.instant(request ->> 'expiresAt'); end if;

  select coalesce(jsonb_agg(jsonb_build_object('path', f.path, 'message', f.message)), '[]') into found
  from (
    select fault_path as path, message from carillon.faults_of(contract -> 'request', request, '')
    union all
    -- A part of the wrong type, or a content that is missing, has a fault already.
    select format('/%s/%s', part, carillon.pointer(names ->> 0)), format('is required for %s', channel)
      || case when jsonb_array_length(names) > 1 then ', or instead ' || (
        select string_agg(name, ' or ' order by n) from jsonb_array_elements_text(names) with ordinality as x(name, n)
        where n > 1) else '' end
    from unnest(array['recipient', 'content']) as part,
      jsonb_array_elements(coalesce(contract -> 'needs' -> channel -> part, '[]')) as names,
      coalesce(request -> part, case part when 'recipient' then '{}'::jsonb end) as given
    where jsonb_typeof(given) = 'object'
      and not given ?| array(select jsonb_array_elements_text(names))
    union all
    select '/expiresAt', case when expires_at <= carillon.now() then 'must be in the future' else 'must be after scheduledFor' end
    where expires_at <= carillon.now() or expires_at <= due_at
    union all
    select '/content/templateVersion', 'needs templateId'
    where request -> 'content' ? 'templateVersion' and not request -> 'content' ? 'templateId'
    union all
    select '/content/headers/' || carillon.pointer(name),
      case when name !~ (contract -> 'headers' ->> 'name') then 'must be the name of a header' else 'is set by Carillon itself' end
    from jsonb_object_keys(case jsonb_typeof(request -> 'content' -> 'headers') when 'object'
      then request -> 'content' -> 'headers' else '{}' end) as name
    where name !~ (contract -> 'headers' ->> 'name') or contract -> 'headers' -> 'reserved' ? lower(name)
    union all
    select '/recipient/timezone', 'must be a time zone like Europe/Paris'
    where jsonb_typeof(request -> 'recipient' -> 'timezone') = 'string'
      and not carillon.is_time_zone(request -> 'recipient' ->> 'timezone')
  ) f;
  return found;
end
$$;

create or replace function carillon.store_items(rows json) returns integer
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
      changed_at = carillon.now()
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
  -- Streams tell the count of what is unread; having arrived changes nothing about it.
  if marked is not null and verb not in ('position', 'ack') then
    update carillon.inboxes b set changed_xid = pg_current_xact_id(), changed_at = carillon.now()
    where b.tenant = of_tenant and b.user_id = of_user;
  end if;
  return coalesce(marked, '{}');
end
$$;
