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

-- Null for what was accepted before, which names no region; where it comes back into a lane it has the pool of its channel.
alter table carillon.notifications add pool smallint;

-- A row is found with its flow. There is no other index on what is ready: first in, first out holds within a tenant.
alter table carillon.ready add pool smallint not null default 0, drop constraint ready_pkey,
  add primary key (priority, tenant, pool, seq);

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

-- The turns of a claim ------------------------------------------------------------------------------------------------------

-- All of this looks and locks nothing; queue_turns() is what a claim asks, in its own statement and snapshot.

-- What a claim may take, in numbers; null is no bound.
create type carillon.queue_bounds as (channels smallint[], tenants integer[], not_tenants integer[], regions smallint[]);

-- From where to look into flows, in the order of their keys. Somebody's open transaction keeps all that was claimed since in the index, and
-- a look from the start walks past it.
create type carillon.queue_heads as (tenants integer[], pools smallint[], seqs bigint[]);

-- What is asked for, without what is paused.
create function carillon.queue_open(channels text[], tenants text[], not_tenants integer[], regions text[],
  out lanes smallint[], out bounds carillon.queue_bounds)
language plpgsql stable as $$
declare
  closed record;
begin
  select array_agg(array_position(array['urgent', 'high', 'normal', 'low'], p.name) - 1) filter (where p.kind = 'lane') as lanes,
    array_agg(carillon.queue_pool(p.name, 0::smallint)) filter (where p.kind = 'channel') as channels,
    array_agg((select t.id from carillon.tenants t where t.name = p.name)) filter (where p.kind = 'tenant') as tenants
  into closed from carillon.pauses p where p.until is null or p.until > carillon.now();
  lanes := array(select n from generate_series(0, 3) as n where (n = any (closed.lanes)) is not true);
  if channels is not null or closed.channels is not null then
    bounds.channels := array(select n from generate_series(1, 15) as n where (n = any (closed.channels)) is not true
      and (channels is null or n in (select carillon.queue_pool(c, 0::smallint) from unnest(channels) as c)));
  end if;
  if tenants is not null then
    bounds.tenants := array(select t.id from carillon.tenants t where t.name = any (tenants));
  end if;
  bounds.not_tenants := not_tenants || closed.tenants;
  if regions is not null then
    bounds.regions := array(select r.id from carillon.regions r where r.name = any (regions));
  end if;
end
$$;

create function carillon.queue_takes(bounds carillon.queue_bounds, tenant integer, pool smallint) returns boolean
language sql immutable parallel safe as $$
  select (tenant = any (bounds.tenants)) is not false and (tenant = any (bounds.not_tenants)) is not true
    and (bounds.channels is null or pool % 16 = 0 or pool % 16 = any (bounds.channels))
    and (bounds.regions is null or pool < 16 or pool / 16 = any (bounds.regions))
$$;

-- The flows of a lane that may be taken, from those of first_tenant on and round, `most` of them; is_over says that these are all. Each costs
-- a probe, and so does one that may not be taken.
create function carillon.queue_walk(lane smallint, of_later boolean, first_tenant integer, most integer, bounds carillon.queue_bounds,
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
      at_tenant := 0;
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

-- All that may have something to take: flows of what is ready, as above, and of what is due. That is found by its time where it is less than a claim
-- of `size`; a burst is walked by flows, a thousand of them. Most of those may wait for another time, and a claim ends with whom the burst is:
-- so each walk begins somewhere else.
create function carillon.queue_flows(lane smallint, has_due boolean, has_ready boolean, first_tenant integer, most integer, size integer,
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
      walk := carillon.queue_walk(lane, true, (random() * (select max(t.id) from carillon.tenants t))::integer, 1000, bounds, null);
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

-- Of which of these flows, the first `due` of which are due, a claim takes how many and up to where: the first `size` of the tenants' turns, each
-- as long as the tenant's weight. Within a tenant what was due goes first; then all as it was accepted, whatever the channel. Of a flow
-- at most `depth` times the weight are looked at, and is_cut says that one may have more.
create function carillon.queue_shares(lane smallint, first_tenant integer, used integer, size integer, depth integer, due integer,
  tenants integer[], pools smallint[], heads bigint[], weights integer[],
  out takes integer[], out last_dues timestamptz[], out last_seqs bigint[], out total integer, out is_cut boolean)
language plpgsql stable as $$
#variable_conflict use_column
begin
  with looked as materialized (
    select f.n, f.tenant, f.weight, r.due_at, r.seq, r.nth = f.weight * depth as is_last
    from unnest(tenants, pools, heads, weights) with ordinality as f(tenant, pool, head, weight, n)
    cross join lateral (
      select l.due_at, l.seq, row_number() over () as nth from (
        select x.due_at, x.seq from carillon.later x where f.n <= due and x.priority = lane and x.tenant = f.tenant and x.pool = f.pool
          and x.due_at <= carillon.now() order by x.due_at, x.seq limit f.weight * depth
      ) l
      union all
      select null, r.seq, row_number() over () from (
        select x.seq from carillon.ready x where f.n > due and x.priority = lane and x.tenant = f.tenant and x.pool = f.pool
          and x.seq >= f.head order by x.seq limit f.weight * depth
      ) r
    ) r
  ), chosen as (
    select * from (
      select *, row_number() over w as nth,
        count(*) filter (where is_last) over (w rows between unbounded preceding and 1 preceding) as unseen
      from looked window w as (partition by tenant order by due_at, seq)
    ) merged
    -- After the last that was looked at of one flow, others of the tenant may be later than what was not.
    where unseen = 0
    order by (nth - 1 + case when tenant = first_tenant then used else 0 end) / weight, tenant < first_tenant, tenant, nth limit size
  ), taken as (
    select n, count(*)::integer as takes, max(due_at) as last_due, max(seq) as last_seq from chosen group by n
  )
  select array_agg(t.takes order by f.n), array_agg(t.last_due order by f.n), array_agg(t.last_seq order by f.n), coalesce(sum(t.takes), 0),
    (select coalesce(bool_or(is_last), false) from looked)
  into takes, last_dues, last_seqs, total, is_cut
  from generate_subscripts(tenants, 1) as f(n) left join taken t using (n);
end
$$;

-- How many a claim of `size` takes from which flow, and up to where, lane by lane. A single flow is not even looked at: what it has is taken as it
-- comes. Of several, about as many are looked at as can be taken; of thousands, 200, and more only if those do not fill the claim.
--
-- Few rows, it says, so that PostgreSQL finds the claim's general plan no dearer than one made for each claim anew, which takes 2 ms.
--
-- `backlog` is the lane that the heads are about. A lane's `spent` is what its first tenant has had of its turn by then.
create function carillon.queue_turns(size integer, lanes smallint[], first_tenants integer[], spent integer[], channels text[], tenants text[],
  not_tenants integer[], regions text[], backlog smallint, head_tenants integer[], head_pools smallint[], head_seqs bigint[])
returns table (lane smallint, is_due boolean, tenant integer, pool smallint, head bigint, last_due timestamptz, last_seq bigint,
  takes integer, weight integer, used integer, is_wrapped boolean, is_mixed boolean)
language plpgsql stable rows 1 as $$
#variable_conflict use_column
declare
  asked record;
  flows record;
  shares record;
  has_due boolean[];
  has_ready boolean[];
  weights integer[];
  heads carillon.queue_heads;
  -- The very first of each lane: its flow need not be looked for again.
  tops carillon.queue_heads;
  wanted integer := size;
  width integer;
  depth integer;
begin
  select array_agg(exists (select from carillon.later l where l.priority = x.lane and l.due_at <= carillon.now()) order by x.n),
    array_agg((x.lane = backlog) is true or r.seq is not null order by x.n), array_agg(r.tenant order by x.n), array_agg(r.pool order by x.n),
    array_agg(r.seq order by x.n)
  into has_due, has_ready, tops.tenants, tops.pools, tops.seqs from unnest(lanes) with ordinality as x(lane, n)
  left join lateral (
    select r.tenant, r.pool, r.seq from carillon.ready r where x.lane is distinct from backlog and r.priority = x.lane
    order by r.tenant, r.pool, r.seq limit 1
  ) r on true;
  if not true = any (has_due || has_ready) then return; end if;
  asked := carillon.queue_open(channels, tenants, not_tenants, regions);

  for nth in 1..cardinality(lanes) loop
    exit when wanted = 0;
    lane := lanes[nth];
    continue when lane <> all (asked.lanes) or not (has_due[nth] or has_ready[nth]);
    heads := case when lane = backlog then row(head_tenants, head_pools, head_seqs)::carillon.queue_heads
      when has_ready[nth] then row(array[tops.tenants[nth]], array[tops.pools[nth]], array[tops.seqs[nth]])::carillon.queue_heads end;
    width := 200;
    loop
      flows := carillon.queue_flows(lane, has_due[nth], has_ready[nth], first_tenants[nth], width, wanted, asked.bounds, heads);
      is_mixed := case cardinality(flows.tenants) when 0 then false when 1 then false
        when 2 then flows.due <> 1 or flows.tenants[1] <> flows.tenants[2] else true end;
      exit when not is_mixed;
      select array_agg(coalesce(w.weight, 1) order by f.n), ceil(wanted::numeric / sum(coalesce(w.weight, 1)))
      into weights, depth from unnest(flows.tenants) with ordinality as f(tenant, n)
      left join lateral (select t.weight from carillon.tenants t where t.id = f.tenant and t.weight <> 1) w on true;
      loop
        shares := carillon.queue_shares(lane, first_tenants[nth], spent[nth], wanted, depth, flows.due, flows.tenants, flows.pools, flows.heads,
          weights);
        exit when shares.total = wanted or not shares.is_cut or not flows.is_over;
        depth := 4 * depth;
      end loop;
      -- Flows of which only a head is known may be empty.
      exit when shares.total = wanted or flows.is_over;
      width := greatest(2 * width, least(wanted, width * wanted / greatest(shares.total, 1)));
    end loop;

    if is_mixed then
      return query select lane, f.n <= flows.due, f.tenant, f.pool, f.head,
          case when count(*) over (partition by f.tenant) > 1 then f.last_due end,
          case when count(*) over (partition by f.tenant) > 1 then f.last_seq end,
          f.takes, f.weight, case when f.tenant = first_tenants[nth] then spent[nth] else 0 end,
          f.tenant < first_tenants[nth], true
        from unnest(flows.tenants, flows.pools, flows.heads, shares.takes, shares.last_dues, shares.last_seqs, weights) with ordinality
          as f(tenant, pool, head, takes, last_due, last_seq, weight, n)
        where f.takes > 0 order by f.tenant < first_tenants[nth], f.tenant, f.n;
      wanted := wanted - shares.total;
    else
      return query select lane, f.n <= flows.due, f.tenant, f.pool, f.head, null::timestamptz, null::bigint, wanted, 1, 0, false, false
        from unnest(flows.tenants, flows.pools, flows.heads) with ordinality as f(tenant, pool, head, n) order by f.n;
      -- How many that are matters only to lower lanes, which have the rest and no more: what is cut off would be a flow's, whatever came before it.
      if true = any (has_due[nth + 1:] || has_ready[nth + 1:]) then
        wanted := greatest(0, wanted - (select count(*) from (
          (select from carillon.later l where flows.due = 1 and l.priority = lane and l.tenant = flows.tenants[1] and l.pool = flows.pools[1]
            and l.due_at <= carillon.now() limit wanted)
          union all
          (select from carillon.ready r where cardinality(flows.tenants) > flows.due and r.priority = lane
            and r.tenant = flows.tenants[flows.due + 1] and r.pool = flows.pools[flows.due + 1] and r.seq >= flows.heads[flows.due + 1] limit wanted)
        ) x));
      end if;
    end if;
  end loop;
end
$$;


-- The record, which says of which flow each is ------------------------------------------------------------------------------

-- The number of a region, which the first request that names it makes; null where that would be one too many: the tenant's twenty-first,
-- or more than two thousand in all. New ones are made one after the other: whoever makes one waits for the commit of whoever is making another.
create function carillon.queue_region(of_tenant integer, of_name text) returns smallint
language plpgsql as $$
declare
  number smallint := (select r.id from carillon.regions r where r.name = of_name);
begin
  if number is not null then return number; end if;
  perform pg_advisory_xact_lock(hashtext('carillon.regions'));
  number := (select r.id from carillon.regions r where r.name = of_name);
  if number is not null or (select count(*) from carillon.regions r where r.tenant = of_tenant) >= 20 then return number; end if;
  number := (select coalesce(max(r.id), 0) + 1 from carillon.regions r);
  if number > 2000 then return null; end if;
  insert into carillon.regions (id, name, tenant) values (number, of_name, of_tenant);
  return number;
end
$$;

-- Those of the rows that name a region, and its number; null where there may be none more, or where somebody's open transaction is making one
-- and has not ended within `patience_ms`: as everybody waits for a shared commit, it waits for nobody.
create function carillon.queue_regions(rows json, patience_ms integer) returns jsonb
language plpgsql as $$
declare
  usual constant text := current_setting('lock_timeout');
  numbers jsonb := '{}';
  named record;
begin
  if patience_ms is not null then perform set_config('lock_timeout', patience_ms::text, true); end if;
  for named in
    select x.t, x.g, array_agg(x.i) as ids from json_to_recordset(rows) as x(i uuid, t integer, g text) where x.g is not null
    group by x.t, x.g order by x.g, x.t
  loop
    begin
      numbers := numbers || (select jsonb_object_agg(i, n.number) from carillon.queue_region(named.t, named.g) as n(number), unnest(named.ids) as i);
    exception when lock_not_available then
      numbers := numbers || (select jsonb_object_agg(i, null) from unnest(named.ids) as i);
    end;
  end loop;
  perform set_config('lock_timeout', usual, true);
  return numbers;
end
$$;

-- With regions the rows have another column: g, the region. `outside` are those that were not stored, as they name one too many.
drop function carillon.accept(json, boolean, integer);
create function carillon.accept(rows json, has_keys boolean, patience_ms integer default null, has_regions boolean default false,
  out accepted_at timestamptz, out replays json, out held json, out outside json)
language plpgsql as $$
declare
  kept_out uuid[] := '{}';
  taken uuid[] := '{}';
  regions jsonb;
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

create or replace function carillon.send(request jsonb, tenant text default 'default') returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  found constant jsonb := carillon.faults(request);
  tenant_id constant integer := (select t.id from carillon.tenants t where t.name = send.tenant);
  id constant uuid := carillon.new_id();
  answer record;
begin
  if found <> '[]' then
    raise exception 'VALIDATION_FAILED: % %', found -> 0 ->> 'path', found -> 0 ->> 'message'
      using errcode = 'invalid_parameter_value', detail = found::text;
  end if;
  if tenant_id is null then
    raise exception 'NOT_FOUND: there is no tenant %', tenant using errcode = 'invalid_parameter_value';
  end if;
  answer := carillon.accept(json_build_array(json_build_object(
    'i', id, 't', tenant_id, 'c', request ->> 'channel',
    'p', array_position(array['urgent', 'high', 'normal', 'low'], coalesce(request ->> 'priority', 'normal')) - 1,
    'u', request -> 'recipient' ->> 'userId', 'd', request ->> 'scheduledFor', 'e', request ->> 'expiresAt',
    'k', request ->> 'idempotencyKey', 'g', request ->> 'region', 'r', request)), request ? 'idempotencyKey', null, request ? 'region');
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

create or replace function carillon.retry(of_tenant integer, ids uuid[]) returns setof uuid
language plpgsql as $$
begin
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = any (ids) order by n.id for update;
  return query
    with ended as materialized (
      select r.id, r.seq, r.priority, r.expires_at, r.status,
        (select coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint)) from carillon.notifications n where n.tenant = of_tenant and n.id = r.id) as pool
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
  n.pool := coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint));
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
    'n.id < carillon.first_id($2) and n.accepted_at <= $2 and not carillon.queue_has(n.tenant,
      coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint)), n.seq)';
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
