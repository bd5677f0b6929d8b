-- Housekeeping in small steps: no statement here takes longer, or is in anybody's way for longer, because there is much to do.

-- Who waits for the lock of a whole table has everybody else wait behind it, so partitions are made and dropped with a lock
-- time-out of some tens of milliseconds: behind an open read they fail, and are tried again later.
--
-- A partition is made by itself and then attached, which leaves the table open for reading and writing; `create table …
-- partition of` would not. Only the default partition is locked. A week of which the default partition already holds
-- something stays there.
create or replace function carillon.make_partitions(first timestamptz, last timestamptz) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  week timestamp := date_trunc('week', first at time zone 'UTC');
  from_id uuid;
  to_id uuid;
  parent text;
  child text;
  made integer := 0;
begin
  while week <= last at time zone 'UTC' loop
    from_id := carillon.first_id(week at time zone 'UTC');
    to_id := carillon.first_id((week + interval '7 days') at time zone 'UTC');
    foreach parent in array array['notifications', 'events'] loop
      child := parent || to_char(week, '"_"YYYYMMDD');
      continue when to_regclass('carillon.' || child) is not null
        or exists (select from carillon.notifications_default where id >= from_id and id < to_id)
        or exists (select from carillon.events_default where notification_id >= from_id and notification_id < to_id);
      execute format('create table carillon.%I (like carillon.%I including all)', child, parent);
      execute format('alter table carillon.%I attach partition carillon.%I for values from (%L) to (%L)', parent, child,
        from_id, to_id);
      made := made + 1;
    end loop;
    week := week + interval '7 days';
  end loop;
  return made;
end
$$;

drop function carillon.retire(timestamptz);

-- Drops a week, notifications and events together; false if something of it still waits. `detach … concurrently` would need no
-- lock of the whole table, but PostgreSQL refuses it beside a default partition.
--
-- With the week's own lock nothing of it can be sent again any more, so the second look is the last word. It shuts out
-- whoever wants to change a row of that week, and no reader.
create function carillon.drop_week(week text) returns boolean
language plpgsql set lock_timeout = '50ms' as $$
declare
  starts constant timestamptz := to_date(week, 'YYYYMMDD')::timestamp at time zone 'UTC';
  first constant uuid := carillon.first_id(starts);
  last constant uuid := carillon.first_id(starts + interval '7 days');
begin
  for look in 1..2 loop
    if exists (select from carillon.ready where id >= first and id < last)
      or exists (select from carillon.leased where id >= first and id < last)
      or exists (select from carillon.schedule where id >= first and id < last) then
      return false;
    end if;
    if look = 1 then execute format('lock table only carillon.%I in exclusive mode', 'notifications_' || week); end if;
  end loop;
  execute format('drop table carillon.%I, carillon.%I', 'notifications_' || week, 'events_' || week);
  return true;
end
$$;

create function carillon.is_waiting(of_seq bigint) returns boolean
language sql stable as $$
  select exists (select from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq)
    or exists (select from carillon.schedule s where s.seq = of_seq)
    or exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0)
$$;

-- Looks at the next notifications of a partition ('20260105', or 'default') in the order of its key, and deletes those
-- that are over, with their events. Answers with how many, and with how far it came; null at the end.
--
-- Locked first, then looked at again: what is being sent again at the same time is either skipped or seen to wait.
create function carillon.thin_out(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql as $$
declare
  is_over constant text := 'n.id < carillon.first_id($2) and n.accepted_at <= $2 and not carillon.is_waiting(n.seq)';
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

-- As before, but no more than `most` items at a time, also of one inbox that has a million.
create or replace function carillon.forget_items(before timestamptz, most integer) returns integer
language plpgsql as $$
declare
  box record;
  last bigint;
  deleted integer;
  forgotten integer := 0;
begin
  for box in
    select x.tenant, x.user_id, array_agg(x.notification_id) as ids from (
      select i.tenant, i.user_id, i.notification_id from carillon.inbox_items i
      where i.notification_id < carillon.first_id(before) and i.created_at <= before order by i.notification_id limit most
    ) x group by x.tenant, x.user_id order by x.tenant, x.user_id
  loop
    perform from carillon.inboxes b where b.tenant = box.tenant and b.user_id = box.user_id for update;
    with gone as (
      delete from carillon.inbox_items i where i.notification_id = any (box.ids) returning i.seq
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

-- Idempotency keys: nobody waits in a shared batch for a key that somebody else's open transaction holds.

-- Takes the keys of these requests; those that are taken stay with whoever has them. Sorted, so that two batches with the
-- same keys wait for each other instead of deadlocking.
create function carillon.take_keys(rows json, at timestamptz) returns void
language sql as $$
  insert into carillon.idempotency as held (tenant, key, id, hash, expires_at)
  select distinct on (x.t, x.k) x.t, x.k, x.i, carillon.fingerprint(x.r), at + carillon.keep_keys()
  from rows from (json_to_recordset(rows) as (i uuid, t integer, k text, r json)) with ordinality as x(i, t, k, r, n)
  where x.k is not null
  order by x.t, x.k, x.n
  on conflict (tenant, key) do update set id = excluded.id, hash = excluded.hash, expires_at = excluded.expires_at
    where held.expires_at <= at
$$;

-- The same, waiting no longer than `patience_ms` for a key that an open transaction holds. Then one key after the other shows which
-- those are; answers with their requests. After five times the patience, what was not tried counts as held too.
create function carillon.try_keys(rows json, at timestamptz, patience_ms integer) returns uuid[]
language plpgsql as $$
declare
  usual constant text := current_setting('lock_timeout');
  held uuid[] := '{}';
  ends_at timestamptz;
  wanted record;
begin
  -- A lock of the whole table is not about a key: waited for as usual.
  lock table carillon.idempotency in row exclusive mode;
  perform set_config('lock_timeout', patience_ms::text, true);
  begin
    perform carillon.take_keys(rows, at);
  exception when lock_not_available then
    perform set_config('lock_timeout', '5', true);
    ends_at := clock_timestamp() + 5 * patience_ms * interval '1 ms';
    for wanted in
      select array_agg(x.i) as ids, json_agg(json_build_object('i', x.i, 't', x.t, 'k', x.k, 'r', x.r) order by x.n) as rows
      from rows from (json_to_recordset(rows) as (i uuid, t integer, k text, r json)) with ordinality as x(i, t, k, r, n)
      where x.k is not null group by x.t, x.k order by x.t, x.k
    loop
      begin
        if clock_timestamp() > ends_at then raise lock_not_available; end if;
        perform carillon.take_keys(wanted.rows, at);
      exception when lock_not_available then
        held := held || wanted.ids;
      end;
    end loop;
  end;
  perform set_config('lock_timeout', usual, true);
  return held;
end
$$;

-- As before, and with a `patience_ms` the requests whose key is held are left out and named in `held`. Without one, a caller in
-- its own transaction waits as its own settings say.
drop function carillon.accept(json, boolean);
create function carillon.accept(rows json, has_keys boolean, patience_ms integer default null,
  out accepted_at timestamptz, out replays json, out held json)
language plpgsql as $$
declare
  kept_out uuid[] := '{}';
  taken uuid[] := '{}';
begin
  accepted_at := statement_timestamp();
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
    insert into carillon.notifications as n (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request)
    select t, i, nextval('carillon.acceptance'), c, p, u, accept.accepted_at, d, e, r
    from json_to_recordset(rows) as x(i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json)
    where x.i <> all (taken || kept_out)
    returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at
  ), scheduled as (
    insert into carillon.schedule (seq, due_at, priority, tenant, id, expires_at)
    select seq, due_at, priority, tenant, id, expires_at from stored where due_at > accept.accepted_at
  )
  insert into carillon.ready (priority, seq, tenant, id, expires_at)
  select priority, seq, tenant, id, expires_at from stored where due_at > accept.accepted_at is not true;

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
