-- The plan of a claim, with less looking: what a tenant with one flow has is taken as it comes, up to the tenant's share. Only what is to be put together
-- in its order is looked at before: several flows of a tenant, and lanes that leave a rest to those below.
-- queue_turns(), and what it calls, serves replicas of 0.4.0.
--
-- All of this looks and locks nothing; queue_plan() is what a claim asks, in its own statement and snapshot.

-- The flows of a lane that may be taken, of what is ready or of what is for later, from those of first_tenant on and round: all of `most`
-- tenants. Each costs a probe, and so does one that may not be taken. Where a flow's head is known, what is before that is not
-- looked at: somebody's open transaction keeps all that was claimed since in the index. Known heads are in the order of the walk.
create function carillon.queue_flows_of(of_later boolean, lane smallint, first_tenant integer, most integer, bounds carillon.queue_bounds,
  known_tenants integer[], known_pools smallint[], known_seqs bigint[])
returns table (tenant integer, pool smallint, head bigint)
language plpgsql stable as $$
#variable_conflict use_column
declare
  only_tenants constant integer[] := bounds.tenants;
  not_tenants constant integer[] := bounds.not_tenants;
  channels constant smallint[] := bounds.channels;
  regions constant smallint[] := bounds.regions;
begin
  return query
    with recursive walk(is_wrapped, at_tenant, at_pool, tenant, pool, head, is_open, last_tenant, tenants, known) as (
      select false, first_tenant - 1, 32767::smallint, null::integer, null::smallint, null::bigint, false, null::integer, 0, 1
      union all
      -- Beyond the last the walk begins anew, once. Of tenants that are not asked for it goes on with the next that is.
      select w.is_wrapped or f.tenant is null,
        case when f.tenant is null then -2147483648
          when f.tenant <> all (only_tenants) then coalesce((select min(t) from unnest(only_tenants) as t where t > f.tenant), 2147483647) - 1
          else f.tenant end,
        case when f.tenant is null or f.tenant <> all (only_tenants) then 32767::smallint else f.pool end,
        f.tenant, f.pool, f.head, o.is_open, case when o.is_open then f.tenant else w.last_tenant end,
        w.tenants + (o.is_open and f.tenant is distinct from w.last_tenant)::integer,
        w.known + ((f.tenant, f.pool) = (k.tenant, k.pool) is true)::integer
      from walk w
      cross join lateral (
        select known_tenants[w.known] as tenant, known_pools[w.known] as pool, known_seqs[w.known] as seq,
          ((known_tenants[w.known], known_pools[w.known]) > (w.at_tenant, w.at_pool)
            and (known_tenants[w.known] < first_tenant) = w.is_wrapped) is true as is_next
      ) k
      -- Bounds of a column each: of rows that are compared only the first column ends a scan, which would go on through all of that tenant's.
      left join lateral (
        (select r.tenant, r.pool, r.seq as head from carillon.ready r where not of_later and r.priority = lane
          and (r.tenant, r.pool) > (w.at_tenant, w.at_pool)
          and r.tenant < case when k.is_next then k.tenant when w.is_wrapped then first_tenant else 2147483647 end
        order by r.tenant, r.pool, r.seq limit 1)
        union all
        (select r.tenant, r.pool, r.seq from carillon.ready r where k.is_next and r.priority = lane and r.tenant = k.tenant
          and r.pool > case when w.at_tenant = k.tenant then w.at_pool else (-1)::smallint end and r.pool < k.pool
        order by r.tenant, r.pool, r.seq limit 1)
        union all
        (select k.tenant, k.pool, k.seq where k.is_next)
        union all
        (select l.tenant, l.pool, 0 from carillon.later l where of_later and l.priority = lane
          and (l.tenant, l.pool) > (w.at_tenant, w.at_pool)
          and l.tenant < case when w.is_wrapped then first_tenant else 2147483647 end
        order by l.tenant, l.pool limit 1)
        limit 1
      ) f on true
      cross join lateral (
        select f.tenant is not null and (f.tenant = any (only_tenants)) is not false and (f.tenant = any (not_tenants)) is not true
          and (channels is null or f.pool % 16 = 0 or f.pool % 16 = any (channels))
          and (regions is null or f.pool < 16 or f.pool / 16 = any (regions)) as is_open
      ) o
      where (f.tenant is not null or not w.is_wrapped) and (w.tenants < most or f.tenant = w.last_tenant)
    )
    select w.tenant, w.pool, w.head from walk w where w.is_open;
end
$$;

-- Whose something is due, by flow. It is found by its time where that is less than a claim of `size`; a burst is walked by flows, `most` of them. Most of
-- those may wait for another time, and a claim ends with whom the burst is: so each walk begins somewhere else.
create type carillon.queue_dues as (tenants integer[], pools smallint[], is_over boolean);
create function carillon.queue_due(lane smallint, size integer, most integer, bounds carillon.queue_bounds) returns carillon.queue_dues
language plpgsql stable as $$
declare
  due carillon.queue_dues;
  rows integer;
  walked record;
begin
  select coalesce(array_agg(d.tenant) filter (where d.is_open), '{}'), coalesce(array_agg(d.pool) filter (where d.is_open), '{}'), sum(d.n)
  into due.tenants, due.pools, rows from (
    select l.tenant, l.pool, count(*) as n, carillon.queue_takes(bounds, l.tenant, l.pool) as is_open from (
      select x.tenant, x.pool from carillon.later x where x.priority = lane and x.due_at <= carillon.now() order by x.due_at limit size
    ) l group by l.tenant, l.pool
  ) d;
  due.is_over := coalesce(rows, 0) < size;
  if due.is_over then return due; end if;
  select array_agg(w.tenant) as tenants, array_agg(w.pool) as pools, count(distinct w.tenant) < most as is_over into walked
  from carillon.queue_flows_of(true, lane, (case lane when 4 then -1 else 1 end * random() * (select max(t.id) from carillon.tenants t))::integer, most, bounds, null, null, null) w;
  due.is_over := walked.is_over;
  select coalesce(array_agg(d.tenant), '{}'), coalesce(array_agg(d.pool), '{}') into due.tenants, due.pools from (
    select * from unnest(due.tenants, due.pools) union
    select * from unnest(walked.tenants, walked.pools) as f(tenant, pool) where exists (select from carillon.later l
      where l.priority = lane and l.tenant = f.tenant and l.pool = f.pool and l.due_at <= carillon.now())
  ) d(tenant, pool);
  return due;
end
$$;

-- Of which flows a claim of `size` takes how many and up to where, lane by lane: the first of the tenants' turns, each as long as the tenant's
-- weight. A tenant's share is what it would get if all had enough; who comes short leaves the claim short, and another claim has the rest, from
-- where this one ended. Of a share that is looked at, `seen` is how many of it there are.
-- Within a tenant what was due goes first; then all as it was accepted, whatever the channel: `last` is the last of its share.
--
-- `width` is of how many tenants what is ready is asked for. `backlog` is the lane that the heads are about. A lane's `spent`
-- is what its first tenant has had of its turn by then.
--
-- Few rows, it says, so that PostgreSQL finds the claim's general plan no dearer than one made for each claim anew, which takes 2 ms.
create function carillon.queue_plan(size integer, lanes smallint[], first_tenants integer[], spent integer[], width integer, channels text[],
  tenants text[], not_tenants integer[], regions text[], backlog smallint, head_tenants integer[], head_pools smallint[], head_seqs bigint[])
returns table (lane smallint, is_due boolean, tenant integer, pool smallint, head bigint, last_due timestamptz, last_seq bigint, takes integer,
  seen integer, weight integer, is_over boolean)
language plpgsql stable rows 1 set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  has_due boolean[];
  has_ready boolean[];
  asked record;
  due carillon.queue_dues;
  heads carillon.queue_heads;
  has_lower boolean;
  wanted integer := size;
  total integer;
begin
  -- The first in order, and not whether there is any: for that PostgreSQL would read the whole table where it takes most rows to be of one lane.
  select array_agg((select l.due_at from carillon.later l where l.priority = x.lane order by l.due_at limit 1) <= carillon.now() is true order by x.n),
    array_agg((x.lane = backlog) is true
      or (select true from carillon.ready r where r.priority = x.lane order by r.tenant, r.pool, r.seq limit 1) is true order by x.n)
  into has_due, has_ready from unnest(lanes) with ordinality as x(lane, n);
  if not true = any (has_due || has_ready) then return; end if;
  asked := carillon.queue_open(channels, tenants, not_tenants, regions);

  for nth in 1..cardinality(lanes) loop
    exit when wanted = 0;
    continue when lanes[nth] <> all (asked.lanes) or not (has_due[nth] or has_ready[nth]);
    has_lower := true = any (has_due[nth + 1:] || has_ready[nth + 1:]);
    due := null;
    if has_due[nth] then due := carillon.queue_due(lanes[nth], wanted, 1000, asked.bounds); end if;
    heads := case when lanes[nth] = backlog then row(head_tenants, head_pools, head_seqs)::carillon.queue_heads end;
    for lane, is_due, tenant, pool, head, last_due, last_seq, takes, seen, weight, is_over, total in
      with flows as materialized (
        select true as is_due, d.tenant, d.pool, 0::bigint as head from unnest(due.tenants, due.pools) as d(tenant, pool)
        union all
        select false, w.tenant, w.pool, w.head from carillon.queue_flows_of(false, lanes[nth], first_tenants[nth], least(wanted, width), asked.bounds,
          heads.tenants, heads.pools, heads.seqs) w where has_ready[nth]
      ), waiting as (
        select f.tenant, array_agg(f.is_due) as dues, array_agg(f.pool) as pools, array_agg(f.head) as heads, has_lower or count(*) > 1 as is_looked_at,
          coalesce((select t.weight from carillon.tenants t where t.id = f.tenant and t.weight <> 1 limit 1), 1)::integer as weight
        from flows f group by f.tenant
      ), shared as (
        select w.*, case when w.tenant = first_tenants[nth] then least(spent[nth], w.weight - 1) else 0 end as used,
          sum(w.weight) over (order by w.tenant < first_tenants[nth], w.tenant rows between unbounded preceding and 1 preceding) as before,
          sum(w.weight) over () as round
        from waiting w
      ), dealt as (
        select s.*, (s.size / s.round * s.weight + greatest(0, least(s.weight, s.size % s.round - coalesce(s.before, 0))) - s.used)::integer as takes
        from (select *, wanted + sum(used) over () as size from shared) s
      ), looked_at as (
        select d.*, l.*, sum(l.seen) over () as total,
          bool_and(d.takes > 0 and (l.seen < d.takes or not d.is_looked_at)) over () as have_less
        from dealt d
        cross join lateral (
          select count(*)::integer as seen, (array_agg(x.due_at))[count(*)::integer] as last_due, (array_agg(x.seq))[count(*)::integer] as last_seq
          from (
            select x.* from unnest(d.dues, d.pools, d.heads) as f(is_due, pool, head)
            cross join lateral (
              (select l.due_at, l.seq from carillon.later l where f.is_due and l.priority = lanes[nth] and l.tenant = d.tenant and l.pool = f.pool
                and l.due_at <= carillon.now() order by l.due_at, l.seq limit d.takes)
              union all
              (select null, r.seq from carillon.ready r where not f.is_due and r.priority = lanes[nth] and r.tenant = d.tenant and r.pool = f.pool
                and r.seq >= f.head order by r.seq limit d.takes)
            ) x where d.is_looked_at order by x.due_at, x.seq limit d.takes
          ) x
        ) l
      )
      select lanes[nth], f.is_due, l.tenant, f.pool, f.head, coalesce(l.last_due, 'infinity'), coalesce(l.last_seq, 9223372036854775807), l.takes,
        l.seen, l.weight, l.have_less and due.is_over is not false and (select count(distinct x.tenant) from flows x where not x.is_due) < least(wanted, width), l.total
      from looked_at l cross join lateral unnest(l.dues, l.pools, l.heads) as f(is_due, pool, head)
      where l.takes > 0 and (f.is_due or l.last_due is null)
      order by l.tenant < first_tenants[nth], l.tenant
    loop
      return next;
    end loop;
    -- Before lanes below have the rest, this one has. Of one that has nothing to take, both are null.
    exit when not is_over;
    wanted := wanted - coalesce(total, 0);
  end loop;
end
$$;
