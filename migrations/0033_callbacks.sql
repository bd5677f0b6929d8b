-- Callbacks: what a tenant asked to be told of its notifications, carried by the same queue and kept in the same record.
--
-- A callback is a notification of our own, about another. Its tenant is the number of whose it is with a minus, so that nothing that is read
-- by tenant ever mixes the two; its channel is `callback`; its lane is 4, below all that can be asked for, which replicas of 0.4.0 never claim.

-- What was stored passed the narrower one.
alter table carillon.notifications drop constraint notifications_priority_check,
  add constraint notifications_priority_check check (priority between 0 and 4) not valid;

create or replace function carillon.queue_pool(channel text, region smallint) returns smallint
language sql immutable parallel safe as $$
  select (region * 16
    + coalesce(array_position(array['email', 'push', 'sms', 'slack', 'webhook', 'inbox', 'console', 'file', 'callback'], channel), 0))::smallint
$$;

create or replace function carillon.queue_has(of_tenant integer, of_pool smallint, of_seq bigint) returns boolean
language sql stable as $$
  select exists (select from carillon.ready r where r.priority in (0, 1, 2, 3, 4) and r.tenant = of_tenant
      and r.pool in (0, of_pool) and r.seq = of_seq)
    or exists (select from carillon.later l where l.seq = of_seq)
    or exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0)
$$;

create or replace function carillon.queue_hold(of_tenant integer, of_pool smallint, of_seq bigint,
  out waits_as carillon.status, out due_at timestamptz)
language plpgsql as $$
begin
  select carillon.waits_as(l.due_at), case when l.waits_for is null then l.due_at end into waits_as, due_at
  from carillon.later l where l.seq = of_seq for update;
  if found then return; end if;
  select 'queued' into waits_as from carillon.ready r where r.priority in (0, 1, 2, 3, 4) and r.tenant = of_tenant
    and r.pool in (0, of_pool) and r.seq = of_seq for update;
end
$$;

create or replace function carillon.queue_move(of_tenant integer, of_pool smallint, of_seq bigint, due timestamptz, rank smallint,
  expiry timestamptz) returns carillon.status
language plpgsql as $$
declare
  waiting record;
begin
  with from_later as (
    delete from carillon.later l where l.seq = of_seq returning l.id, l.attempt, l.pool
  ), from_ready as (
    delete from carillon.ready r where r.priority in (0, 1, 2, 3, 4) and r.tenant = of_tenant and r.pool in (0, of_pool)
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

-- Of a tenant that is paused its callbacks are paused too.
create or replace function carillon.queue_open(channels text[], tenants text[], not_tenants integer[], regions text[],
  out lanes smallint[], out bounds carillon.queue_bounds)
language plpgsql stable as $$
declare
  closed record;
begin
  select array_agg(array_position(array['urgent', 'high', 'normal', 'low'], p.name) - 1) filter (where p.kind = 'lane') as lanes,
    array_agg(carillon.queue_pool(p.name, 0::smallint)) filter (where p.kind = 'channel') as channels,
    array_agg((select t.id from carillon.tenants t where t.name = p.name)) filter (where p.kind = 'tenant') as tenants
  into closed from carillon.pauses p where p.until is null or p.until > carillon.now();
  lanes := array(select n from generate_series(0, 4) as n where (n = any (closed.lanes)) is not true);
  if channels is not null or closed.channels is not null then
    bounds.channels := array(select n from generate_series(1, 15) as n where (n = any (closed.channels)) is not true
      and (channels is null or n in (select carillon.queue_pool(c, 0::smallint) from unnest(channels) as c)));
  end if;
  if tenants is not null then
    bounds.tenants := array(select t.id from carillon.tenants t where t.name = any (tenants));
  end if;
  bounds.not_tenants := not_tenants || closed.tenants;
  if closed.tenants is not null then
    bounds.not_tenants := bounds.not_tenants || array(select -t from unnest(closed.tenants) as t);
  end if;
  if regions is not null then
    bounds.regions := array(select r.id from carillon.regions r where r.name = any (regions));
  end if;
end
$$;

-- Round is from the very first: callbacks are of tenants below zero.
create or replace function carillon.queue_walk(lane smallint, of_later boolean, first_tenant integer, most integer, bounds carillon.queue_bounds,
  known carillon.queue_heads, out tenants integer[], out pools smallint[], out heads bigint[], out is_over boolean)
language plpgsql stable as $$
declare
  at_tenant integer := first_tenant - 1;
  at_pool smallint := 32767;
  -- First to the end of the lane, then from its start to where it began.
  end_tenant integer := 2147483647;
  tenant integer;
  pool smallint;
  head bigint;
  n integer := 1;
begin
  tenants := '{}';
  pools := '{}';
  heads := '{}';
  loop
    while (known.tenants[n], known.pools[n]) <= (at_tenant, at_pool) loop
      n := n + 1;
    end loop;
    if of_later then
      select l.tenant, l.pool, 0 into tenant, pool, head from carillon.later l
      where l.priority = lane and (l.tenant, l.pool) > (at_tenant, at_pool) and l.tenant < end_tenant order by l.tenant, l.pool limit 1;
    elsif known.tenants[n] < end_tenant then
      -- Up to the next with a head only: what is before that must not be looked at.
      select r.tenant, r.pool, r.seq into tenant, pool, head from carillon.ready r
      where r.priority = lane and (r.tenant, r.pool) > (at_tenant, at_pool) and (r.tenant, r.pool) < (known.tenants[n], known.pools[n])
      order by r.tenant, r.pool, r.seq limit 1;
      if tenant is null then
        tenant := known.tenants[n];
        pool := known.pools[n];
        head := known.seqs[n];
      end if;
    else
      select r.tenant, r.pool, r.seq into tenant, pool, head from carillon.ready r
      where r.priority = lane and (r.tenant, r.pool) > (at_tenant, at_pool) and r.tenant < end_tenant
      order by r.tenant, r.pool, r.seq limit 1;
    end if;
    at_tenant := tenant;
    at_pool := pool;
    if tenant is null then
      is_over := end_tenant = first_tenant;
      exit when is_over;
      at_tenant := -2147483648;
      at_pool := 32767;
      end_tenant := first_tenant;
      n := 1;
    elsif tenant <> all (bounds.tenants) then
      at_tenant := coalesce((select min(t) from unnest(bounds.tenants) as t where t > tenant), end_tenant) - 1;
      at_pool := 32767;
    elsif tenant = any (bounds.not_tenants) then
      at_pool := 32767;
    elsif carillon.queue_takes(bounds, tenant, pool) then
      tenants := tenants || tenant;
      pools := pools || pool;
      heads := heads || head;
    end if;
    is_over := false;
    exit when cardinality(tenants) = most;
  end loop;
end
$$;

create or replace function carillon.queue_flows(lane smallint, has_due boolean, has_ready boolean, first_tenant integer, most integer, size integer,
  bounds carillon.queue_bounds, known carillon.queue_heads,
  out tenants integer[], out pools smallint[], out heads bigint[], out due integer, out is_over boolean)
language plpgsql stable as $$
declare
  walk record;
  rows integer;
begin
  tenants := '{}';
  pools := '{}';
  is_over := true;
  if has_due then
    select coalesce(array_agg(d.tenant) filter (where d.is_open), '{}'), coalesce(array_agg(d.pool) filter (where d.is_open), '{}'), sum(d.n)
    into tenants, pools, rows from (
      select l.tenant, l.pool, count(*) as n, carillon.queue_takes(bounds, l.tenant, l.pool) as is_open from (
        select x.tenant, x.pool from carillon.later x where x.priority = lane and x.due_at <= carillon.now() order by x.due_at limit size
      ) l group by l.tenant, l.pool
    ) d;
    if rows = size then
      walk := carillon.queue_walk(lane, true, (case lane when 4 then -1 else 1 end * random() * (select max(t.id) from carillon.tenants t))::integer, 1000, bounds, null);
      select coalesce(array_agg(d.tenant), '{}'), coalesce(array_agg(d.pool), '{}') into tenants, pools from (
        select * from unnest(tenants, pools) union
        select * from unnest(walk.tenants, walk.pools) as f(tenant, pool) where exists (select from carillon.later l
          where l.priority = lane and l.tenant = f.tenant and l.pool = f.pool and l.due_at <= carillon.now())
      ) d(tenant, pool);
    end if;
  end if;
  due := cardinality(tenants);
  heads := array_fill(0, array[due]);
  if has_ready then
    walk := carillon.queue_walk(lane, false, first_tenant, most, bounds, known);
    tenants := tenants || walk.tenants;
    pools := pools || walk.pools;
    heads := heads || walk.heads;
    is_over := walk.is_over;
  end if;
end
$$;

-- What a request asked to be told, and where: written only for those that asked, so that whoever follows need not read requests.
create table carillon.callback_markers (
  id     uuid primary key,
  tenant integer not null,
  url    text not null,
  policy text,
  events text[]
);

-- carillon.accept(), for rows of which some have a callbackUrl.
create function carillon.accept_calling(rows json, has_keys boolean, patience_ms integer, has_regions boolean,
  out accepted_at timestamptz, out replays json, out held json, out outside json)
language plpgsql as $$
declare
  unstored uuid[];
begin
  select a.accepted_at, a.replays, a.held, a.outside into accepted_at, replays, held, outside
  from carillon.accept(rows, has_keys, patience_ms, has_regions) a;
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
    union all
    select '/' || name, 'needs callbackUrl' from unnest(array['callbackPolicy', 'callbackEvents']) as name
    where request ? name and not request ? 'callbackUrl'
  ) f;
  return found;
end
$$;

create or replace function carillon.send(request jsonb, tenant text default 'default') returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  found constant jsonb := carillon.faults(request);
  tenant_id constant integer := (select t.id from carillon.tenants t where t.name = send.tenant);
  id constant uuid := carillon.new_id();
  rows json;
  answer record;
begin
  if found <> '[]' then
    raise exception 'VALIDATION_FAILED: % %', found -> 0 ->> 'path', found -> 0 ->> 'message'
      using errcode = 'invalid_parameter_value', detail = found::text;
  end if;
  if tenant_id is null then
    raise exception 'NOT_FOUND: there is no tenant %', tenant using errcode = 'invalid_parameter_value';
  end if;
  rows := json_build_array(json_build_object(
    'i', id, 't', tenant_id, 'c', request ->> 'channel',
    'p', array_position(array['urgent', 'high', 'normal', 'low'], coalesce(request ->> 'priority', 'normal')) - 1,
    'u', request -> 'recipient' ->> 'userId', 'd', request ->> 'scheduledFor', 'e', request ->> 'expiresAt',
    'k', request ->> 'idempotencyKey', 'g', request ->> 'region', 'r', request));
  if request ? 'callbackUrl' then
    answer := carillon.accept_calling(rows, request ? 'idempotencyKey', null, request ? 'region');
  else
    answer := carillon.accept(rows, request ? 'idempotencyKey', null, request ? 'region');
  end if;
  if answer.outside is not null then
    raise exception 'VALIDATION_FAILED: /region is new, and no more can be made now' using errcode = 'invalid_parameter_value';
  end if;
  if answer.replays is null then return id; end if;
  if not (answer.replays -> 0 ->> 'same')::boolean then
    raise exception 'IDEMPOTENCY_MISMATCH: the idempotency key % was used with another body', request ->> 'idempotencyKey'
      using errcode = 'unique_violation';
  end if;
  return (answer.replays -> 0 ->> 'id')::uuid;
end
$$;


-- Callbacks that stand in line ----------------------------------------------------------------------------------------------

-- In order of their places; those that are no longer in the queue have ended, and go when somebody comes upon them. The first of the others
-- has its turn.
create table carillon.callback_lines (
  line   text not null,
  place  bigint generated always as identity,
  tenant integer not null,
  seq    bigint not null unique,
  primary key (line, place)
);

create function carillon.queue_first(of_line text) returns bigint
language plpgsql as $$
declare
  member carillon.callback_lines;
begin
  loop
    select * into member from carillon.callback_lines l where l.line = of_line order by l.place limit 1;
    if not found then return null; end if;
    if carillon.queue_has(member.tenant, carillon.queue_pool('callback', 0::smallint), member.seq) then return member.seq; end if;
    delete from carillon.callback_lines l where l.line = member.line and l.place = member.place;
  end loop;
end
$$;

create function carillon.queue_advance(lines text[]) returns void
language plpgsql as $$
declare
  of_line text;
  first_seq bigint;
begin
  foreach of_line in array lines loop
    first_seq := carillon.queue_first(of_line);
    update carillon.later l set due_at = carillon.now() where l.seq = first_seq and l.due_at >= timestamptz '9999-12-31 00:00Z';
  end loop;
end
$$;

-- From the line after that one on; `last` is null at the end.
create function carillon.queue_advance_some(after_line text, most integer, out n integer, out last text)
language plpgsql as $$
declare
  at_line text := after_line;
begin
  for i in 1..most loop
    n := i - 1;
    select l.line into at_line from carillon.callback_lines l where l.line > at_line order by l.line limit 1;
    if not found then
      last := null;
      return;
    end if;
    perform carillon.queue_advance(array[at_line]);
    last := at_line;
  end loop;
  n := most;
end
$$;

create function carillon.queue_line_up(lines text[], tenants integer[], ids uuid[]) returns void
language plpgsql as $$
begin
  insert into carillon.callback_lines (line, tenant, seq)
  select x.line, x.tenant, n.seq from unnest(lines, tenants, ids) with ordinality as x(line, tenant, id, nth)
  cross join lateral (select n.seq from carillon.notifications n where n.tenant = x.tenant and n.id = x.id) n
  order by x.nth;
  perform carillon.queue_advance(array(select distinct x from unnest(lines) as x));
end
$$;

create function carillon.queue_are_first(lines text[], tenants integer[], seqs bigint[]) returns boolean[]
language plpgsql as $$
declare
  answers boolean[] := '{}';
begin
  insert into carillon.callback_lines (line, tenant, seq)
  select x.line, x.tenant, x.seq from unnest(lines, tenants, seqs) with ordinality as x(line, tenant, seq, nth) order by x.nth
  on conflict (seq) do nothing;
  for n in 1..cardinality(lines) loop
    answers := answers || (carillon.queue_first(lines[n]) is not distinct from seqs[n]);
  end loop;
  return answers;
end
$$;

-- Those that were never tried, and wait because an endpoint did not answer or was paused: the soonest first, and of as many others as that no more
-- than can be looked at in a moment. What waits out a backoff, or for its turn in line, is left alone.
create function carillon.queue_hurry(of_tenant integer, of_endpoint text, most integer) returns integer
language sql as $$
  with soon as materialized (
    select l.seq, l.id from carillon.later l
    where l.priority = 4 and l.tenant = of_tenant and l.pool = carillon.queue_pool('callback', 0::smallint)
      and l.due_at > carillon.now() and l.due_at < timestamptz '9999-12-31 00:00Z' and l.attempt = 0
    order by l.due_at, l.seq limit 10 * most
  ), chosen as materialized (
    select s.seq from soon s cross join lateral (
      select from carillon.notifications n where n.tenant = of_tenant and n.id = s.id and n.user_id = of_endpoint
    ) n limit most
  ), hurried as (
    update carillon.later l set due_at = carillon.now() from chosen c where l.seq = c.seq and l.due_at > carillon.now() returning 1
  )
  select count(*)::integer from hurried
$$;
