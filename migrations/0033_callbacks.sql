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
