-- Retention that drops a week although something of it still waits, and the archive to which a week goes before it is dropped.
--
-- What waits, and what changed after it was archived, moves on to the default partition when its week goes. From there it goes once it is
-- over, a few rows at a time.

-- Weeks on their way out, and those that were brought back. `name` is what the archive knows it by. A row goes with its week.
--   begun     from now on it is noted what changes
--   writing   the parts are written, one after the other
--   written   manifest and parts were read back: it may be dropped
--   restored  brought back from the archive, to be read until `keep_until`
create table carillon.archive_weeks (
  week       text primary key check (week ~ '^[0-9]{8}$'),
  name       text not null,
  state      text not null default 'begun' check (state in ('begun', 'writing', 'written', 'restored')),
  begun_at   timestamptz not null default carillon.now(),
  keep_until timestamptz,
  check ((state = 'restored') = (keep_until is not null))
);

-- What is in the archive already, so that a writer that is killed goes on after the last of these.
create table carillon.archive_parts (
  week        text not null references carillon.archive_weeks on delete cascade,
  number      integer not null,
  last_tenant integer not null,
  last_id     uuid not null,
  part        json not null,
  primary key (week, number)
);

-- What the archive does not have, or not as it stands: it waited when its week was begun, or something happened to it since.
create table carillon.archive_stragglers (
  week   text not null references carillon.archive_weeks on delete cascade,
  id     uuid not null,
  tenant integer not null,
  primary key (week, id)
);

-- What cannot be archived at the moment, for health and figures: a week, or `default`.
create table carillon.archive_trouble (
  part   text primary key,
  since  timestamptz not null default carillon.now(),
  reason text not null
);

-- Whether weeks must be archived before they are dropped: as the keeper that was started last is configured. Only replicas of 0.4.0, which
-- know nothing of it, need to be kept from dropping by this.
create table carillon.archiving (
  is_only     boolean primary key default true check (is_only),
  is_required boolean not null default false
);
insert into carillon.archiving default values;

create function carillon.week_starts(week text) returns timestamptz
language sql stable strict as $$ select to_date(week, 'YYYYMMDD')::timestamp at time zone 'UTC' $$;

-- The instant that an id was made at.
create function carillon.time_of(id uuid) returns timestamptz
language sql immutable strict parallel safe as $$
  select timestamptz 'epoch' + ('x' || substring(replace(id::text, '-', '') for 12))::bit(48)::bigint * interval '1 ms'
$$;

-- The week's first id, and the first one after it.
create function carillon.week_ids(week text, out first uuid, out beyond uuid)
language sql stable strict as $$
  select carillon.first_id(carillon.week_starts(week)), carillon.first_id(carillon.week_starts(week) + interval '7 days')
$$;

create function carillon.columns_of(parent regclass) returns text
language sql stable as $$
  select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
  where attrelid = parent and attnum > 0 and not attisdropped
$$;

-- On the partition of a week that is being archived, and on no other: nobody who writes about younger weeks meets it.
create function carillon.note_straggler() returns trigger
language plpgsql as $$
begin
  if current_setting('carillon.restoring', true) is distinct from 'on' then
    insert into carillon.archive_stragglers (week, id, tenant) values (tg_argv[0], new.notification_id, new.tenant)
    on conflict do nothing;
  end if;
  return null;
end
$$;

create function carillon.watch_week(week text) returns void
language plpgsql set lock_timeout = '50ms' as $$
begin
  execute format('create or replace trigger note_straggler after insert on carillon.%I for each row
    execute function carillon.note_straggler(%L)', 'events_' || week, week);
end
$$;

-- What is of somebody who asked to be forgotten, and what callbacks told of them: the archive of the week is not to have it. It moves on when the
-- week is dropped, and is archived late, once it is blank.
create function carillon.pass_over(of_week text, of_tenant integer, of_user text) returns void
language plpgsql as $$
begin
  execute format('insert into carillon.archive_stragglers (week, id, tenant)
    select $1, n.id, n.tenant from carillon.%I n where n.tenant = $2 and n.user_id = $3
    union all
    select $1, n.id, n.tenant from carillon.%1$I n where n.tenant = -$2 and n.request #>> ''{callback,data,userId}'' = $3
    on conflict do nothing', 'notifications_' || of_week) using of_week, of_tenant, of_user;
end
$$;

-- Begins the archive of a week under that name, or goes on with the one that was begun. Whatever waits when the trigger is in place is noted
-- by the second call; what comes to wait later leaves an event.
create function carillon.begin_archive(of_week text, as_name text) returns carillon.archive_weeks
language plpgsql as $$
declare
  begun carillon.archive_weeks;
begin
  select * into begun from carillon.archive_weeks w where w.week = of_week;
  if not found then
    perform carillon.watch_week(of_week);
    insert into carillon.archive_weeks (week, name) values (of_week, as_name) on conflict do nothing;
    select * into begun from carillon.archive_weeks w where w.week = of_week;
  elsif begun.state = 'begun' then
    insert into carillon.archive_stragglers (week, id, tenant)
    select of_week, q.id, q.tenant from carillon.queue_entries q, carillon.week_ids(of_week) w
    where q.id >= w.first and q.id < w.beyond
    on conflict do nothing;
    -- Whoever has asked to be forgotten is not written down before they are; whoever asks from now on sees that this was begun.
    perform pg_advisory_xact_lock(hashtextextended('carillon.deletions', 0));
    perform carillon.pass_over(of_week, d.tenant, d.user_id) from carillon.deletions d where d.finished_at is null;
    update carillon.archive_weeks w set state = 'writing' where w.week = of_week returning * into begun;
  end if;
  return begun;
end
$$;

-- The next of a partition in the order of its key, a line each: the notification as it is stored, with its events in the order in which they
-- happened. JSON has no line break inside of a string, so a blank may stand for each. Row by row and not as one set: what tenants sent
-- may be large, and no more of it is held than `most_bytes` and the few rows that PostgreSQL reads ahead.
--
-- `kept` chooses from x, a notification; $5 is what it goes by besides. Answers with nulls where nothing is left.
create function carillon.archive_page(part text, after_tenant integer, after_id uuid, most integer, most_bytes integer, kept text,
  before timestamptz, out lines text, out ids uuid[], out tenants integer[], out seqs bigint[], out events integer)
language plpgsql as $$
declare
  next record;
  written text[] := '{}';
  size bigint := 0;
begin
  ids := '{}';
  tenants := '{}';
  seqs := '{}';
  events := 0;
  for next in execute format('select x.tenant, x.id, e.events, e.seq, replace(''{"notification":'' || row_to_json(x)::text
        || '',"events":'' || coalesce(e.lines::text, ''[]'') || ''}'', E''\n'', '' '') as line
      from carillon.%I x cross join lateral (
        select json_agg(row_to_json(e) order by e.seq, e.at) as lines, count(*)::int as events, coalesce(max(e.seq), 0) as seq
        from carillon.%I e where e.notification_id = x.id
      ) e
      where (x.tenant, x.id) > ($1, $2) and %s order by x.tenant, x.id limit $3',
    'notifications_' || part, 'events_' || part, kept) using after_tenant, after_id, most, part, before
  loop
    written := written || next.line;
    ids := ids || next.id;
    tenants := tenants || next.tenant;
    seqs := seqs || next.seq;
    events := events + next.events;
    size := size + octet_length(next.line);
    exit when size >= most_bytes;
  end loop;
  lines := array_to_string(written, E'\n');
end
$$;

-- Of a week that is being written: all but what the archive is not to have yet.
create function carillon.archive_week_page(week text, after_tenant integer, after_id uuid, most integer, most_bytes integer,
  out lines text, out ids uuid[], out tenants integer[], out seqs bigint[], out events integer)
language sql as $$
  select * from carillon.archive_page(week, after_tenant, after_id, most, most_bytes,
    'not exists (select from carillon.archive_stragglers s where s.week = $4 and s.id = x.id)', null)
$$;

-- Of a notification x, for statements that are put together here: older than $5, and not in the queue.
create function carillon.is_over() returns text
language sql immutable as $$
  select 'x.id < carillon.first_id($5) and x.accepted_at <= $5 and not carillon.queue_has(x.tenant,
    coalesce(x.pool, carillon.queue_pool(x.channel, 0::smallint)), x.seq)'
$$;

-- What is over of the default partition, or of a week of which too much waits to move on: the next of it, all of one week. What is of somebody
-- who is being forgotten waits until it is blank.
create function carillon.archive_late_page(part text, before timestamptz, most integer, most_bytes integer,
  out week text, out lines text, out ids uuid[], out tenants integer[], out seqs bigint[], out events integer)
language plpgsql as $$
declare
  found_id uuid;
  span record;
  goes constant text := carillon.is_over() || ' and not exists (select from carillon.deletions d where d.finished_at is null
    and d.tenant = abs(x.tenant) and d.user_id = case when x.tenant > 0 then x.user_id else x.request #>> ''{callback,data,userId}'' end)';
begin
  execute format('select x.id from carillon.%I x where %s order by x.id limit 1', 'notifications_' || part, goes)
  into found_id using null, null, null, null, before;
  if found_id is null then return; end if;
  week := to_char(date_trunc('week', carillon.time_of(found_id) at time zone 'UTC'), 'YYYYMMDD');
  span := carillon.week_ids(week);
  select p.lines, p.ids, p.tenants, p.seqs, p.events into lines, ids, tenants, seqs, events
  from carillon.archive_page(part, -2147483648, '00000000-0000-0000-0000-000000000000', most, most_bytes,
    format('x.id >= %L and x.id < %L and %s', span.first, span.beyond, goes), before) p;
end
$$;

-- Those were archived as they stood when `seqs` were their last events. What has changed since stays, to be archived once more. Nobody writes
-- an event meanwhile.
create function carillon.delete_archived(part text, of_ids uuid[], of_tenants integer[], of_seqs bigint[]) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  gone uuid[];
begin
  execute format('lock table only carillon.%I in share row exclusive mode', 'events_' || part);
  execute format('select array(select n.id from unnest($1, $2, $3) as a(tenant, id, seq)
      join carillon.%I n on n.tenant = a.tenant and n.id = a.id
      where not carillon.queue_has(n.tenant, coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint)), n.seq)
        and a.seq = coalesce((select max(e.seq) from carillon.%I e where e.notification_id = a.id), 0)
      for update of n skip locked)', 'notifications_' || part, 'events_' || part) into gone using of_tenants, of_ids, of_seqs;
  execute format('delete from carillon.%I where (tenant, id) in (select a.tenant, a.id from unnest($1, $2) as a(tenant, id)
      where a.id = any ($3))', 'notifications_' || part) using of_tenants, of_ids, gone;
  execute format('delete from carillon.%I where notification_id = any ($1)', 'events_' || part) using gone;
  delete from carillon.archive_stragglers s where s.week = part and s.id = any (gone);
  return cardinality(gone);
end
$$;

-- Drops a week, notifications and events together. What waits, and what the archive has not as it stands, moves on to the default partition; false
-- where that is more than `most`, and then nothing is changed.
--
-- With the week's own lock nothing of it can be sent again any more: what waits only becomes less. It shuts out whoever wants to change a
-- row of that week, and no reader. With both tables locked nobody is about to write an event either; everybody waits from then on, for
-- as long as it takes to copy those few rows. Detached, as the default partition takes nothing of a week that has its own.
create function carillon.retire_week(of_week text, most integer) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
declare
  span constant record := carillon.week_ids(of_week);
  moving uuid[];
  parent text;
  archive text;
begin
  execute format('lock table only carillon.%I in exclusive mode', 'notifications_' || of_week);
  moving := array(select q.id from carillon.queue_entries q where q.id >= span.first and q.id < span.beyond limit most + 1);
  if cardinality(moving) > most then return false; end if;
  lock table only carillon.notifications, only carillon.events in access exclusive mode;
  moving := array(select unnest(moving) union select s.id from carillon.archive_stragglers s where s.week = of_week);
  if cardinality(moving) > most then return false; end if;
  foreach parent in array array['notifications', 'events'] loop
    execute format('alter table carillon.%I detach partition carillon.%I', parent, parent || '_' || of_week);
    if moving <> '{}' then
      execute format('insert into carillon.%I (%s) select %2$s from carillon.%I where %I = any ($1)', parent || '_default',
        carillon.columns_of(('carillon.' || parent)::regclass), parent || '_' || of_week,
        case parent when 'events' then 'notification_id' else 'id' end) using moving;
    end if;
    execute format('drop table carillon.%I', parent || '_' || of_week);
  end loop;
  delete from carillon.archive_weeks w where w.week = of_week returning w.name into archive;
  perform carillon.write_audit(json_build_object('actorKind', 'process', 'actor', 'keeper', 'action', 'week.drop', 'objectKind', 'week',
    'objectName', of_week, 'after', json_strip_nulls(json_build_object('archive', archive, 'moved', cardinality(moving)))));
  return true;
end
$$;

-- Looks at the next notifications of a partition ('20260105', or 'default') in the order of its key, and deletes those that are over, with
-- their events; of a week that was archived, those that the archive has as they stand. Answers with how many, and with how far it came;
-- null at the end.
--
-- Locked first, then looked at again: what is being sent again at the same time is either skipped or seen to wait.
create function carillon.thin(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql set lock_timeout = '50ms' as $$
declare
  goes constant text := carillon.is_over()
    || ' and not exists (select from carillon.archive_stragglers s where s.week = $4 and s.id = x.id)';
  places tid[];
begin
  deleted := 0;
  execute format('with next as materialized (
      select x.ctid as place, x.* from carillon.%I x where (x.tenant, x.id) > ($1, $2) order by x.tenant, x.id limit $3
    )
    select array(select x.place from next x where %s), l.tenant, l.id
    from (select tenant, id from next order by tenant desc, id desc limit 1) l', 'notifications_' || part, goes)
  into places, last_tenant, last_id using after_tenant, after_id, most, part, before;
  if cardinality(places) > 0 then
    execute format('lock table only carillon.%I in share row exclusive mode', 'events_' || part);
    execute format('select array(select x.ctid from carillon.%I x where x.ctid = any ($1) for update skip locked)',
      'notifications_' || part) into places using places;
    execute format('with gone as (delete from carillon.%I x where x.ctid = any ($1) and %s returning x.id),
        told as (delete from carillon.%I where notification_id = any (array(select id from gone)))
      select count(*) from gone', 'notifications_' || part, goes, 'events_' || part)
    into deleted using places, null, null, part, before;
  end if;
end
$$;

-- For replicas of 0.4.0, as before, unless there is an archive.
create or replace function carillon.drop_week(week text) returns boolean
language sql as $$
  select not (select is_required from carillon.archiving) and not exists (select from carillon.archive_weeks w where w.week = drop_week.week)
    and carillon.retire_week(week, 0)
$$;

create or replace function carillon.thin_out(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql as $$
begin
  deleted := 0;
  if (select is_required from carillon.archiving) then return; end if;
  select t.* into deleted, last_tenant, last_id from carillon.thin(part, before, after_tenant, after_id, most) t;
end
$$;

-- What comes back from the archive ---------------------------------------------------------------------------------------------

-- Makes a partition for a week that was dropped, to be filled from the archive and kept until then; false where the week is in the record
-- anyway. What was left of it in the default partition is what the archive has not as it stands, and comes along.
create function carillon.begin_restore(of_week text, as_name text, days integer) returns boolean
language plpgsql set lock_timeout = '1s' as $$
declare
  span constant record := carillon.week_ids(of_week);
  until constant timestamptz := carillon.now() + days * interval '1 day';
  parent text;
  child text;
begin
  if to_regclass('carillon.notifications_' || of_week) is not null then
    update carillon.archive_weeks w set keep_until = until where w.week = of_week and w.state = 'restored';
    return found;
  end if;
  insert into carillon.archive_weeks (week, name, state, keep_until) values (of_week, as_name, 'restored', until);
  lock table only carillon.notifications_default, only carillon.events_default in access exclusive mode;
  insert into carillon.archive_stragglers (week, id, tenant)
  select of_week, n.id, n.tenant from carillon.notifications_default n where n.id >= span.first and n.id < span.beyond;
  foreach parent in array array['notifications', 'events'] loop
    child := parent || '_' || of_week;
    execute format('create table carillon.%I (like carillon.%I including all)', child, parent);
    execute format('with moved as (delete from carillon.%I where %I >= $1 and %2$I < $2 returning %s)
      insert into carillon.%I (%3$s) select %3$s from moved', parent || '_default',
      case parent when 'events' then 'notification_id' else 'id' end, carillon.columns_of(('carillon.' || parent)::regclass), child)
    using span.first, span.beyond;
    execute format('alter table carillon.%I attach partition carillon.%I for values from (%L) to (%L)', parent, child,
      span.first, span.beyond);
  end loop;
  perform carillon.watch_week(of_week);
  return true;
end
$$;

-- Brings lines of the archive back into the partition of their week: nothing of it is queued, and nobody is told of it, as the partition's
-- own table is written to. What is there already stays as it is. `tenants` is from their numbers in the archive to those of today;
-- those of others are left out as `foreign_ones`, those of people who were forgotten since as `forgotten`. Notifications and events are
-- numbered anew, and without the pool: the old numbers may be somebody's in this database. Columns that came later have their defaults.
create function carillon.restore_lines(of_week text, lines json, tenants json, out restored integer, out forgotten integer,
  out foreign_ones integer)
language plpgsql as $$
declare
  columns_then text;
  event_columns text;
  ids uuid[];
begin
  perform set_config('carillon.restoring', 'on', true);
  -- Whoever asks to be forgotten waits for this, and then finds what came back; or was before, and is seen here.
  perform pg_advisory_xact_lock(hashtextextended('carillon.deletions', 0));
  select string_agg(quote_ident(a.attname), ', ') into columns_then from pg_attribute a
  where a.attrelid = 'carillon.notifications'::regclass and a.attnum > 0 and not a.attisdropped
    and a.attname not in ('tenant', 'seq', 'pool') and a.attname in (select json_object_keys(lines -> 0 -> 'notification'));
  execute format('with given as materialized (
      select ($2 ->> x.tenant::text)::integer as whose, x.*
      from json_array_elements($1) as l(line), json_populate_record(null::carillon.notifications, l.line -> ''notification'') as x
    ), kept as materialized (
      select * from given g where g.whose is not null and not carillon.is_of_forgotten(g.whose, g.user_id, g.accepted_at, g.request)
    ), stored as (
      insert into carillon.%I (tenant, seq, %s) select k.whose, nextval(''carillon.acceptance''), %2$s from kept k
      on conflict (tenant, id) do nothing returning id
    )
    select array(select id from stored), count(*) filter (where g.whose is not null) - (select count(*) from kept),
      count(*) filter (where g.whose is null) from given g', 'notifications_' || of_week, columns_then)
  into ids, forgotten, foreign_ones using lines, tenants;
  select string_agg(quote_ident(a.attname), ', ') into event_columns from pg_attribute a
  where a.attrelid = 'carillon.events'::regclass and a.attnum > 0 and not a.attisdropped and a.attname not in ('tenant', 'seq')
    and a.attname in (select json_object_keys(e.event) from (
      select l.line -> 'events' -> 0 as event from json_array_elements(lines) as l(line)
      where json_array_length(l.line -> 'events') > 0 limit 1) e);
  if event_columns is not null then
    execute format('insert into carillon.%I (tenant, %s) select ($2 ->> x.tenant::text)::integer, %2$s
      from json_array_elements($1) as l(line), json_populate_recordset(null::carillon.events, l.line -> ''events'') as x
      where x.notification_id = any ($3) order by x.seq, x.at', 'events_' || of_week, event_columns) using lines, tenants, ids;
  end if;
  restored := cardinality(ids);
end
$$;

-- What was brought back is there to be read, and is not sent again.
create function carillon.is_restored(of_id uuid) returns boolean
language sql stable as $$
  select exists (select from carillon.archive_weeks w, carillon.week_ids(w.week) s
    where w.state = 'restored' and of_id >= s.first and of_id < s.beyond
      and not exists (select from carillon.archive_stragglers x where x.week = w.week and x.id = of_id))
$$;
