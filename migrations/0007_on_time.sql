-- On time: hints, rescheduling, recurring schedules, reminders.

-- Whoever sleeps is told that something came. Our own processes do that themselves, after their commits and many rows
-- at once (their connections say carillon.hints = own). For everybody else, plain SQL included, the hint is part of the
-- transaction; since NOTIFY holds a lock of the whole database through the commit, a busy sender may set carillon.hints =
-- off and be found by polling.
create function carillon.gives_hints() returns boolean
language sql stable as $$ select coalesce(current_setting('carillon.hints', true), '') not in ('own', 'off') $$;

create function carillon.hint_ready() returns trigger language plpgsql as $$
begin
  perform pg_notify('carillon_ready', '');
  return null;
end
$$;
create trigger ready_hint after insert on carillon.ready
  for each statement when (carillon.gives_hints()) execute function carillon.hint_ready();

-- The instant, in milliseconds, at which the earliest of them is due. What goes away needs no hint: the
-- scheduler looks once for nothing.
create function carillon.hint_due() returns trigger language plpgsql as $$
declare
  earliest constant timestamptz := (select min(due_at) from changed);
begin
  if earliest is not null then
    perform pg_notify('carillon_due', floor(date_part('epoch', earliest) * 1000)::bigint::text);
  end if;
  return null;
end
$$;
create trigger schedule_insert_hint after insert on carillon.schedule referencing new table as changed
  for each statement when (carillon.gives_hints()) execute function carillon.hint_due();
create trigger schedule_update_hint after update on carillon.schedule referencing new table as changed
  for each statement when (carillon.gives_hints()) execute function carillon.hint_due();

-- What waits in the schedule is pending until its time, and queued from then on: nobody has to write that down.
create function carillon.waits_as(due_at timestamptz) returns carillon.status language sql stable as $$
  select case when due_at <= statement_timestamp() then 'queued' else 'pending' end::carillon.status
$$;

create or replace view carillon.records as
  select n.*, case
    when exists (select from carillon.claims c where n.seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, n.seq) - 1) = 0) then 'processing'::carillon.status
    else coalesce((select carillon.waits_as(s.due_at) from carillon.schedule s where s.seq = n.seq),
      nullif((select e.to_status from carillon.events e where e.notification_id = n.id order by e.at desc limit 1), 'pending'),
      'queued')
  end as status
  from carillon.notifications n;

-- Another time, expiry or priority for a notification that still waits; what is null stays. This is the only update that a
-- notification's row ever sees. Answers with its status, and whether the change was made.
create function carillon.reschedule(of_tenant integer, of_id uuid, due timestamptz, expiry timestamptz, drops_expiry boolean,
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
  -- A claim may take it between two of these statements, and hand it back: look again.
  for look in 1..3 loop
    select r.status into status from carillon.records r where r.tenant = of_tenant and r.id = of_id;
    if status not in ('pending', 'queued') then return; end if;
    select * into waiting from (
      select s.attempt, s.due_at, carillon.waits_as(s.due_at) as was from carillon.schedule s where s.seq = n.seq for update
    ) scheduled;
    if not found then
      select * into waiting from (
        select r.attempt, null::timestamptz as due_at, 'queued'::carillon.status as was from carillon.ready r
        where r.priority in (0, 1, 2, 3) and r.seq = n.seq for update
      ) queued;
    end if;
    exit when found;
  end loop;
  if waiting is null then return; end if;

  due_at := coalesce(due, waiting.due_at);
  expires_at := case when not drops_expiry then coalesce(expiry, n.expires_at) end;
  priority := coalesce(rank, n.priority);
  if expires_at <= greatest(due_at, clock_timestamp()) then
    refusal := case when expires_at <= clock_timestamp() then 'must be in the future' else 'must be after scheduledFor' end;
    return;
  end if;

  delete from carillon.schedule s where s.seq = n.seq;
  delete from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = n.seq;
  if due_at > clock_timestamp() then
    status := 'pending';
    insert into carillon.schedule (seq, due_at, priority, tenant, id, attempt, expires_at)
    values (n.seq, due_at, priority, n.tenant, n.id, waiting.attempt, expires_at);
  else
    status := 'queued';
    insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
    values (priority, n.seq, n.tenant, n.id, waiting.attempt, expires_at);
  end if;
  update carillon.notifications x set due_at = coalesce(due, x.due_at), expires_at = reschedule.expires_at,
    priority = reschedule.priority
  where x.tenant = of_tenant and x.id = of_id;
  insert into carillon.events (notification_id, tenant, type, from_status, to_status, detail)
  values (n.id, n.tenant, 'rescheduled', waiting.was, status, json_strip_nulls(json_build_object(
    'scheduledFor', due, 'expiresAt', expires_at,
    'priority', (array['urgent', 'high', 'normal', 'low'])[priority + 1])));
  is_done := true;
end
$$;

-- Recurring schedules. next_at is the tick to come; none when paused or over.
create table carillon.recurrences (
  tenant     integer not null references carillon.tenants,
  key        text not null,
  cron       text,
  every      text,
  timezone   text not null,
  from_at    timestamptz not null,
  until_at   timestamptz,
  catch_up   text not null check (catch_up in ('once', 'skip')),
  notice     json not null,
  next_at    timestamptz,
  paused_at  timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (tenant, key),
  check ((cron is null) <> (every is null)),
  check (paused_at is null or next_at is null)
);
create index recurrences_by_next on carillon.recurrences (next_at) where next_at is not null;

-- What became of each tick. The key makes a second firing of the same tick impossible.
create table carillon.runs (
  tenant        integer not null,
  key           text not null,
  tick          timestamptz not null,
  at            timestamptz not null default clock_timestamp(),
  outcome       text not null check (outcome in ('sent', 'skipped', 'failed')),
  skipped       integer not null,
  notifications uuid[] not null default '{}',
  error         text,
  primary key (tenant, key, tick),
  foreign key (tenant, key) references carillon.recurrences on delete cascade
);

-- Reminders before an event. `before` null: the offsets of the nearest scope that has some.
create table carillon.reminders (
  tenant       integer not null references carillon.tenants,
  key          text not null,
  at           timestamptz not null,
  timezone     text not null,
  before       text[],
  scopes       text[] not null,
  notice       json not null,
  offsets      text[] not null,
  offsets_from text not null,
  created_at   timestamptz not null default clock_timestamp(),
  updated_at   timestamptz not null default clock_timestamp(),
  primary key (tenant, key)
);

-- Which reminders a scope may concern, in an order that a re-plan can go on in.
create table carillon.scope_members (
  tenant integer not null,
  scope  text not null,
  key    text not null,
  primary key (tenant, scope, key),
  foreign key (tenant, key) references carillon.reminders on delete cascade
);
create index scope_members_of_reminder on carillon.scope_members (tenant, key);

create table carillon.reminder_scopes (
  tenant     integer not null references carillon.tenants,
  scope      text not null,
  before     text[] not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (tenant, scope)
);

-- What will be sent when, and what has been. The key is the promise that nothing is sent twice for the same reminder, offset and
-- time of the event, however often plans change.
create table carillon.reminder_plan (
  id            bigint generated always as identity unique,
  tenant        integer not null,
  key           text not null,
  at            timestamptz not null,
  before        text not null,
  due_at        timestamptz not null,
  outcome       text check (outcome in ('sent', 'missed', 'failed')),
  ended_at      timestamptz,
  notifications uuid[] not null default '{}',
  error         text,
  primary key (tenant, key, at, before),
  foreign key (tenant, key) references carillon.reminders on delete cascade,
  check ((outcome is null) = (ended_at is null))
);
create index reminder_plan_by_due on carillon.reminder_plan (due_at) where outcome is null;

-- A scope's change that still has to reach its reminders: done up to and including `reached`.
create table carillon.replans (
  tenant      integer not null,
  scope       text not null,
  reached     text not null default '',
  done        integer not null default 0,
  total       integer not null,
  started_at  timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (tenant, scope)
);
create index replans_to_do on carillon.replans (started_at) where finished_at is null;
