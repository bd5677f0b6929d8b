-- Turns of a claim may be longer than one each: each costs, however long it is. How long, a worker says. The function of the same name without
-- that, of turns of one, serves replicas of 0.6.0.

-- Of which flows a claim of `size` takes how many and up to where, lane by lane: the first of the tenants' turns, each `turn` times as long as the tenant's
-- weight. A tenant's share is what it would get if all had enough; who comes short leaves the claim short, and another claim has the rest, from
-- where this one ended. Of a share that is looked at, `seen` is how many of it there are.
-- Within a tenant what was due goes first; then all as it was accepted, whatever the channel: `last` is the last of its share.
--
-- `width` is of how many tenants what is ready is asked for. `backlog` is the lane that the heads are about. A lane's `spent`
-- is what its first tenant has had of its turn by then.
--
-- Few rows, it says, so that PostgreSQL finds the claim's general plan no dearer than one made for each claim anew, which takes 2 ms.
create function carillon.queue_plan(size integer, lanes smallint[], first_tenants integer[], spent integer[], width integer, channels text[],
  tenants text[], not_tenants integer[], regions text[], backlog smallint, head_tenants integer[], head_pools smallint[], head_seqs bigint[],
  turn integer)
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
          coalesce((select t.weight from carillon.tenants t where t.id = f.tenant and t.weight <> 1 limit 1), 1)::integer * turn as weight
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
