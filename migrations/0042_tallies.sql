-- Tallies: what happened, counted. A follower of the feed adds to them, in the transaction that moves its position; nobody else does, and
-- nothing is written for them on the way of a notification. Whoever wants a number reads them, instead of the record.
--
--   feed ──► follower `tallies` ──► fresh lines ──► lines of all grains ──► tallies        and what it has not read yet: untallied

-- Each fact is counted in four grains: its minute, hour and day (UTC), and `ever`, whose instant is -infinity. The finer ones go after a while, and
-- nothing is lost by that but how fine it was. What there is none of is ''. `was` and `becomes` are from where to where; an acceptance has
-- neither. `latencies` counts attempts by how long the provider took (src/domain/histogram.ts says where one place ends and
-- the next begins), or is empty. The lane is the one that it had when it happened, or when it was counted.
-- A minute begins as `fresh`, which stands for all four grains, and is put into them once it is over: with thousands of tenants each of their lines is
-- then written a time a minute, and not each time that somebody counts.
create table carillon.tally_lines (
  tenant    integer not null,
  grain     text not null check (grain in ('fresh', 'minute', 'hour', 'day', 'ever')),
  at        timestamptz not null,
  channel   text not null,
  lane      smallint not null,
  provider  text not null,
  event     text not null,
  was       text not null,
  becomes   text not null,
  outcome   text not null,
  count     bigint not null,
  cost      numeric not null,
  latencies bigint[] not null,
  primary key (tenant, grain, at, channel, lane, provider, event, was, becomes, outcome)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index tally_lines_by_age on carillon.tally_lines (grain, at);

-- What to read. Of one key there may be several lines: they are to be summed up.
create view carillon.tallies as
  select tenant, grain, at, channel, lane, provider, event, was, becomes, outcome, count, cost, latencies from carillon.tally_lines
  where grain in ('minute', 'hour', 'day', 'ever')
  union all
  select f.tenant, s.grain, s.at, f.channel, f.lane, f.provider, f.event, f.was, f.becomes, f.outcome, f.count, f.cost, f.latencies
  from carillon.tally_lines f cross join lateral (values
    ('minute', f.at), ('hour', date_trunc('hour', f.at, 'UTC')), ('day', date_trunc('day', f.at, 'UTC')), ('ever', '-infinity')
  ) s(grain, at) where f.grain = 'fresh';

-- Whoever writes facts by the hundred says how many of which kind they are, so that they need not be looked up one by one: a list of
-- [[tenant, channel, lane, provider, event, was, becomes, outcome, place in the histogram], count, cost]. Of all facts of a row of the feed, or null.
alter table carillon.feed add counts json;

-- Where there are almost as many lines as facts, to make them takes longer than to look the facts up.
create function carillon.worth_it(lines bigint, facts numeric) returns boolean
language sql immutable parallel safe as $$ select lines * 4 <= facts $$;

-- As before, and how many of which kind.
drop function carillon.tell(integer[], smallint[], uuid[], bigint[]);
create function carillon.tell(of_tenants integer[], of_types smallint[], of_ids uuid[], of_numbers bigint[], of_counts json default null) returns boolean
language plpgsql volatile as $$
declare
  here constant bigint := (
    select e.cluster from carillon.epochs e where e.started_at = pg_postmaster_start_time() order by e.epoch desc limit 1);
begin
  if of_ids is null then return false; end if;
  insert into carillon.feed (cluster, key, floor, size, tenants, types, ids, numbers, counts)
  values (coalesce(here, carillon.read_cluster()),
    greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1),
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint, cardinality(of_ids),
    case when of_tenants[1] = all (of_tenants) then of_tenants[1:1] else of_tenants end,
    case when of_types[1] = all (of_types) then of_types[1:1] else of_types end, of_ids, of_numbers, of_counts);
  return true;
end
$$;

-- What was there before the first look is counted from the record, in the order of tenant and id: up to here it is. The follower passes over what is
-- beyond, as that will be counted then. All is once the id is the greatest there can be. Of a new database all is from the start: the feed has it.
create table carillon.tallied (
  is_only boolean primary key default true check (is_only),
  tenant  integer not null default 0,
  id      uuid not null default '00000000-0000-0000-0000-000000000000'
);
insert into carillon.tallied default values;
update carillon.tallied set tenant = 2147483647, id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' where not exists (select from carillon.notifications);

-- What the feed has and the tallies do not: some tenths of a second's worth, as a rule. Nothing where nobody has begun.
create view carillon.untallied as
  select f.* from carillon.followers w join carillon.epochs e on e.epoch = w.epoch
  cross join lateral (select * from carillon.feed x where x.cluster = e.cluster and (x.key, x.seq) >= (w.key, w.seq)) f
  where w.name = 'tallies'
  union all
  select f.* from carillon.followers w join carillon.epochs e on e.epoch > w.epoch
  cross join lateral (select * from carillon.feed x where x.cluster = e.cluster) f
  where w.name = 'tallies';


-- Retention waits for them ----------------------------------------------------------------------------------------------------

-- Whether all that happened to these is counted. Where a great deal is not, that is answered without looking at all of it.
create function carillon.is_tallied(first uuid, last uuid) returns boolean
language sql volatile as $$
  select not exists (select from carillon.followers w where w.name = 'tallies')
    or ((select t.id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' from carillon.tallied t)
      and (select count(*) <= 10000 and coalesce(bool_and(not exists (select from unnest(u.ids) as i where i between first and last)), true)
        from (select x.ids from carillon.untallied x limit 10001) u))
$$;

-- As before, unless something of it is not counted yet: then it fails, and is tried again soon. It is asked with everything locked, so that nothing
-- comes in between.
create function carillon.must_be_tallied(first uuid, last uuid) returns void
language plpgsql as $$
begin
  if not carillon.is_tallied(first, last) then
    raise exception 'what is to go has not been counted yet' using errcode = 'lock_not_available';
  end if;
end
$$;

alter function carillon.retire_week(text, integer) rename to retire_week_now;
create function carillon.retire_week(of_week text, most integer) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
declare
  span constant record := carillon.week_ids(of_week);
  is_gone boolean;
begin
  -- Also before: nobody is to be locked out for nothing.
  perform carillon.must_be_tallied(span.first, span.beyond);
  is_gone := carillon.retire_week_now(of_week, most);
  if is_gone then perform carillon.must_be_tallied(span.first, span.beyond); end if;
  return is_gone;
end
$$;

alter function carillon.thin(text, timestamptz, integer, uuid, integer) rename to thin_now;
create function carillon.thin(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql set lock_timeout = '50ms' as $$
begin
  select t.deleted, t.last_tenant, t.last_id into deleted, last_tenant, last_id
  from carillon.thin_now(part, before, after_tenant, after_id, most) t;
  if deleted > 0 then perform carillon.must_be_tallied('00000000-0000-0000-0000-000000000000', carillon.first_id(before)); end if;
end
$$;

alter function carillon.delete_archived(text, uuid[], integer[], bigint[]) rename to delete_archived_now;
create function carillon.delete_archived(part text, of_ids uuid[], of_tenants integer[], of_seqs bigint[]) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  gone constant integer := carillon.delete_archived_now(part, of_ids, of_tenants, of_seqs);
begin
  if gone > 0 then
    perform carillon.must_be_tallied((select i from unnest(of_ids) as i order by i limit 1),
      (select i from unnest(of_ids) as i order by i desc limit 1));
  end if;
  return gone;
end
$$;

-- A day of the feed stays until it is counted.
alter function carillon.drop_feed_day(text) rename to drop_feed_day_now;
create function carillon.drop_feed_day(day text) returns void
language plpgsql set lock_timeout = '50ms' as $$
declare
  starts constant timestamptz := to_date(day, 'YYYYMMDD')::timestamp at time zone 'UTC';
begin
  if exists (select from carillon.untallied u where u.at >= starts and u.at < starts + interval '1 day') then return; end if;
  perform carillon.drop_feed_day_now(day);
end
$$;

alter function carillon.thin_feed(timestamptz, integer) rename to thin_feed_now;
create function carillon.thin_feed(before timestamptz, most integer) returns integer
language plpgsql as $$
begin
  if exists (select from carillon.untallied u where u.at < before) then return 0; end if;
  return carillon.thin_feed_now(before, most);
end
$$;


-- The queue, counted no further than asked ------------------------------------------------------------------------------------

-- What is in the queue of a tenant, claimed or not, up to so many. Where a great deal was handed to another engine, that is not looked through: it is
-- said to be as many.
create function carillon.queue_waiting(of_tenant integer, most integer) returns bigint
language sql stable as $$
  select case when (select count(*) > 1000 from (select from carillon.handoffs limit 1001) h) then most
    else (select count(*) from (
      select from generate_series(0, 3) as lane cross join lateral (
        -- In the order of their indexes: else the whole table is walked through for a lane that has none.
        (select from carillon.ready r where r.priority = lane and r.tenant = of_tenant order by r.pool, r.seq limit most)
        union all
        (select from carillon.later l where l.priority = lane and l.tenant = of_tenant order by l.pool, l.due_at, l.seq limit most)) w
      union all
      select from carillon.leased h where h.tenant = of_tenant
      union all
      select from carillon.queue_handed_flows h where h.tenant = of_tenant
      limit most
    ) waiting) end
$$;
