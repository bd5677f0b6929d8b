-- The whole schema as migrations 0001 to 0026 leave it, for a new database and for whoever wants to read it. A database that exists
-- goes the numbered way; a test compares the two. Changes come as new numbered migrations, which run after this.
--
-- A notification is written once, wide, and changed only when it is rescheduled. What moves is narrow: an entry of the queue, found
-- by seq. What happened is a row of events. A notification's status is read from these facts (view records), never stored
-- beside them.
--
--   the clock · tenants and keys · the record · the queue · what the record says · acceptance · sending from SQL · changes
--   hints · schedules and reminders · templates · channels · guards · inboxes · who runs · housekeeping


-- The clock -----------------------------------------------------------------------------------------------------------------

-- The one clock. Schedules, expiry, reminders, retries, retention and the record go by it; leases, leaders, heartbeats, locks and limits
-- go by the true time, statement_timestamp() or clock_timestamp(), whatever this says. It stands still while a statement runs, so that an
-- index can be used. PostgreSQL puts the body in the place of the call: it costs nothing.
create function carillon.now() returns timestamptz
language sql stable parallel safe as $$ select statement_timestamp() $$;


-- Tenants and keys ----------------------------------------------------------------------------------------------------------

create table carillon.tenants (
  id         integer generated always as identity primary key,
  name       text not null unique check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  created_at timestamptz not null default carillon.now()
);
insert into carillon.tenants (name) values ('default');

create table carillon.keys (
  id           text primary key,
  tenant       integer not null references carillon.tenants,
  name         text not null,
  hash         bytea not null check (length(hash) = 32),
  scopes       text[] not null check (scopes <@ array['send', 'read', 'admin'] and cardinality(scopes) > 0),
  created_at   timestamptz not null default carillon.now(),
  expires_at   timestamptz,
  revoked_at   timestamptz,
  last_used_at timestamptz
);

-- Makes the first key, once: of replicas that start together, one is answered true. The lock makes
-- the others wait, and the statement after it sees what the winner committed.
create function carillon.make_first_key(id text, name text, hash bytea) returns boolean
language plpgsql as $$
begin
  lock table carillon.keys in share row exclusive mode;
  insert into carillon.keys (id, tenant, name, hash, scopes)
  select make_first_key.id, 1, make_first_key.name, make_first_key.hash, array['admin']
  where not exists (select from carillon.keys);
  return found;
end
$$;

-- Secrets that we make ourselves, such as the one behind subscribers' tokens. Made at first use.
create table carillon.secrets (
  name       text primary key,
  secret     bytea not null check (length(secret) >= 32),
  created_at timestamptz not null default carillon.now()
);


-- The record ----------------------------------------------------------------------------------------------------------------

create type carillon.status as enum ('pending', 'queued', 'processing', 'sent', 'delivered', 'failed', 'cancelled',
  'expired', 'suppressed', 'ambiguous');

-- Acceptance order, and the key of whatever moves. Eight bytes, ever growing: the indexes of the
-- queue stay narrow and are appended to. One number serves a notification wherever the queue has it.
create sequence carillon.acceptance as bigint;

-- Ids are UUIDv7, so a range of ids is a span of time: partitions are made, and one day dropped,
-- by id, while a lookup by id still touches one partition only. The tenant comes first in the key,
-- so that one index serves the lookup and the tenant's list in order of acceptance.
create table carillon.notifications (
  tenant      integer not null,
  id          uuid not null,
  seq         bigint not null,
  channel     text not null,
  priority    smallint not null check (priority between 0 and 3),
  user_id     text,
  accepted_at timestamptz not null,
  due_at      timestamptz,
  expires_at  timestamptz,
  request     json not null,
  primary key (tenant, id)
) partition by range (id);
create index notifications_of_user on carillon.notifications (tenant, user_id, id) where user_id is not null;

-- The order of events, by no clock. Whoever writes an event holds what it is about (its place in the queue, its claim or its row) or has
-- read the event before it, and draws a number then: of two events about one notification the later has the greater. `accepted`,
-- which is not stored, is 0; what was written before there were numbers is 1, and goes by its time among itself.
create sequence carillon.event_seq as bigint start with 2 minvalue 0;

-- What leads from where to where, as in src/domain/event.ts. Nearly all are attempts: only those are looked at in the CHECK itself, which
-- PostgreSQL reads anew for every statement. With the others beside them a settlement of one took 90 µs more; so it is 10.
create function carillon.can_happen(type text, was carillon.status, becomes carillon.status) returns boolean
language plpgsql immutable as $$
begin
  return case type
    when 'postponed' then was = 'processing' and becomes = 'pending'
    when 'retried' then was in ('failed', 'ambiguous', 'expired', 'cancelled') and becomes = 'queued'
    when 'rescheduled' then was in ('pending', 'queued') and becomes in ('pending', 'queued')
    when 'cancelled' then was in ('pending', 'queued') and becomes = 'cancelled'
    when 'expired' then was in ('pending', 'queued') and becomes = 'expired'
    when 'delivered' then was in ('sent', 'ambiguous') and becomes = 'delivered'
    when 'bounced' then was in ('sent', 'delivered') and becomes = 'failed'
    when 'reminder.due' then was = 'queued' and becomes = 'queued'
    else false
  end;
end
$$;

-- A settled attempt is one row here, and so is everything else that changes a status.
create table carillon.events (
  notification_id uuid not null,
  tenant          integer not null,
  at              timestamptz not null default carillon.now(),
  type            text not null,
  from_status     carillon.status not null,
  to_status       carillon.status not null,
  attempt         smallint,
  token           bigint,
  worker          integer,
  started_at      timestamptz,
  provider        text,
  outcome         text,
  error           text,
  latency_ms      real,
  cost            real,
  detail          json,
  seq             bigint not null default nextval('carillon.event_seq'),
  constraint events_can_happen check (case type
    when 'attempt' then from_status = 'processing' and to_status = any ('{sent,pending,failed,expired,suppressed,ambiguous}')
    else carillon.can_happen(type, from_status, to_status)
  end)
) partition by range (notification_id);
create index events_of_notification on carillon.events (notification_id);
-- Costs nothing for what goes well.
create index events_failed on carillon.events (tenant, notification_id) where to_status = 'failed';

-- The smallest UUIDv7 of an instant. Time in ids begins with 1970: what is earlier comes before every id.
create function carillon.first_id(at timestamptz) returns uuid
language sql immutable strict parallel safe as $$
  select (lpad(to_hex(greatest(0, floor(extract(epoch from at) * 1000))::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- In the order of the clock, which stands still while a statement runs: ids that one statement makes are in no order among themselves.
create function carillon.new_id() returns uuid
language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send(floor(extract(epoch from carillon.now()) * 1000)::bigint) from 3)
    from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
$$;

-- A partition a week, of notifications and of their events alike, so that both are dropped together.
-- The default partition catches ids from a clock that is far off.
create table carillon.notifications_default partition of carillon.notifications default;
create table carillon.events_default partition of carillon.events default;

-- Who waits for the lock of a whole table has everybody else wait behind it, so partitions are made and dropped with a lock
-- time-out of some tens of milliseconds: behind an open read they fail, and are tried again later.
--
-- A partition is made by itself and then attached, which leaves the table open for reading and writing; `create table …
-- partition of` would not. Only the default partition is locked. A week of which the default partition already holds
-- something stays there.
create function carillon.make_partitions(first timestamptz, last timestamptz) returns integer
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
select carillon.make_partitions(carillon.now() - interval '7 days', carillon.now() + interval '56 days');


-- The queue -----------------------------------------------------------------------------------------------------------------

-- Its tables, `ready`, `later` and `claims`, are named by what is called queue_…, by their triggers and by the views `schedule` and `leased`,
-- by nothing else. Whoever writes or reads the record asks those, in its own statement and transaction. An engine that keeps what
-- waits elsewhere brings its own in their place.

-- May be claimed now, in this order. The queue tables live by insert and delete; eager vacuuming
-- keeps their dead rows few.
create table carillon.ready (
  priority   smallint not null,
  seq        bigint not null,
  tenant     integer not null,
  id         uuid not null,
  attempt    smallint not null default 0,
  expires_at timestamptz,
  primary key (priority, seq)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index ready_expiring on carillon.ready (expires_at) where expires_at is not null;

-- To be claimed once due, before what is ready in the same lane.
create table carillon.later (
  seq        bigint primary key,
  due_at     timestamptz not null,
  priority   smallint not null,
  tenant     integer not null,
  id         uuid not null,
  attempt    smallint not null default 0,
  expires_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index later_by_due on carillon.later (priority, due_at);
create index later_expiring on carillon.later (expires_at) where expires_at is not null;

-- Taken by a worker until lease_until: a claim is one row, whatever it holds, and so is its end. The token of a claim is
-- greater than all before it, so that a worker whose lease ran out can change nothing any more. `done` has a bit for each that it
-- holds, set once it is settled; when all are, the row goes.
create sequence carillon.lease_token as bigint;
create table carillon.claims (
  token       bigint primary key,
  worker      integer not null,
  started_at  timestamptz not null,
  lease_until timestamptz not null,
  first_seq   bigint not null,
  last_seq    bigint not null,
  done        bit varying not null,
  seqs        bigint[] not null,
  priorities  smallint[] not null,
  tenants     integer[] not null,
  ids         uuid[] not null,
  attempts    smallint[] not null,
  expiries    timestamptz[] not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_cost_delay = 0);
-- They live for milliseconds: not worth compressing.
alter table carillon.claims alter seqs set storage external, alter priorities set storage external,
  alter tenants set storage external, alter ids set storage external, alter attempts set storage external,
  alter expiries set storage external;

-- The same one by one, for whoever looks.
create view carillon.leased as
  select h.seq, h.priority, h.tenant, h.id, h.attempt, h.expires_at, c.worker, c.token, c.started_at, c.lease_until
  from carillon.claims c
  cross join lateral unnest(c.seqs, c.priorities, c.tenants, c.ids, c.attempts, c.expiries) with ordinality
    as h(seq, priority, tenant, id, attempt, expires_at, place)
  where get_bit(c.done, h.place::integer - 1) = 0;

-- For replicas of 0.2.0, which lock, insert and delete here. They name rows by their ctid, which a view has only as a column.
create view carillon.schedule as
  select seq, due_at, priority, tenant, id, attempt, expires_at, ctid from carillon.later;

-- Pending until its time, and queued from then on: nobody has to write that down.
create function carillon.waits_as(due_at timestamptz) returns carillon.status language sql stable as $$
  select case when due_at <= carillon.now() then 'queued' else 'pending' end::carillon.status
$$;

-- To offer is to insert here, what may be claimed at once and what waits for its time, each notification into one of them and only
-- while it is in neither and held by nobody. Views, because PostgreSQL puts the table in their place: acceptance stays one statement. A
-- function that takes arrays made it cost 4 % more.
create view carillon.queue_now as select priority, seq, tenant, id, expires_at from carillon.ready;
create view carillon.queue_later as select due_at, priority, seq, tenant, id, expires_at from carillon.later;

-- All that is in the queue, claimed or not. One snapshot sees each once.
create view carillon.queue_entries as
  select seq, tenant, id from carillon.ready
  union all select seq, tenant, id from carillon.later
  union all select seq, tenant, id from carillon.leased;

-- Where the queue has it: processing, or pending and queued as it waits for its time or did. Null where the queue does not have it or only
-- in a lane: the record knows which. PostgreSQL puts the body in the place of the call, as it is read for thousands at a time.
create function carillon.queue_standing(of_seq bigint) returns table (status carillon.status)
language sql stable as $$
  select case
    when exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0) then 'processing'::carillon.status
    else (select carillon.waits_as(l.due_at) from carillon.later l where l.seq = of_seq)
  end
$$;

create function carillon.queue_has(of_seq bigint) returns boolean
language sql stable as $$
  select exists (select from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq)
    or exists (select from carillon.later l where l.seq = of_seq)
    or exists (select from carillon.claims c where of_seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, of_seq) - 1) = 0)
$$;

-- Keeps one that waits from being claimed until the transaction ends. All null where it does not wait: somebody has taken it up.
create function carillon.queue_hold(of_seq bigint, out waits_as carillon.status, out due_at timestamptz)
language plpgsql as $$
begin
  select carillon.waits_as(l.due_at), l.due_at into waits_as, due_at from carillon.later l where l.seq = of_seq for update;
  if found then return; end if;
  select 'queued' into waits_as from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq for update;
end
$$;

-- Another time, lane and expiry for one that waits; what is null is none. Null where it does not wait, and then nothing is changed.
create function carillon.queue_move(of_seq bigint, due timestamptz, rank smallint, expiry timestamptz) returns carillon.status
language plpgsql as $$
declare
  waiting record;
begin
  with from_later as (
    delete from carillon.later l where l.seq = of_seq returning l.tenant, l.id, l.attempt
  ), from_ready as (
    delete from carillon.ready r where r.priority in (0, 1, 2, 3) and r.seq = of_seq returning r.tenant, r.id, r.attempt
  )
  select * into waiting from (table from_later union all table from_ready) x;
  if not found then return null; end if;
  if due > carillon.now() then
    insert into carillon.later (seq, due_at, priority, tenant, id, attempt, expires_at)
    values (of_seq, due, rank, waiting.tenant, waiting.id, waiting.attempt, expiry);
    return 'pending';
  end if;
  insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
  values (rank, of_seq, waiting.tenant, waiting.id, waiting.attempt, expiry);
  return 'queued';
end
$$;

-- Lanes of which nothing is claimed.
create table carillon.queue_pauses (
  priority  smallint primary key check (priority between 0 and 3),
  reason    text not null,
  paused_at timestamptz not null default carillon.now()
);


-- What the record says ------------------------------------------------------------------------------------------------------

-- Every notification with the status that the facts give it.
create view carillon.records as
  select n.*, coalesce(
    (select q.status from carillon.queue_standing(n.seq) q),
    nullif((select e.to_status from carillon.events e where e.notification_id = n.id order by e.seq desc, e.at desc limit 1), 'pending'),
    'queued') as status
  from carillon.notifications n;

-- The instant that a text means, or null if there is no such day.
create function carillon.instant(written text) returns timestamptz
language plpgsql stable as $$
begin
  return written::timestamptz;
exception when data_exception then
  return null;
end
$$;

-- Everything that happened to a notification, its acceptance included: a row of notifications says that already, so no other is
-- written for it. In the order of seq, at.
create view carillon.history as
  select n.tenant, n.id as notification_id, 0::bigint as seq, n.accepted_at as at, 'accepted' as type,
    null::carillon.status as from_status,
    -- As it was asked for; due_at may have been changed since.
    case when carillon.instant(n.request ->> 'scheduledFor') > n.accepted_at then 'pending' else 'queued' end::carillon.status
      as to_status,
    null::smallint as attempt, null::bigint as token, null::integer as worker, null::timestamptz as started_at,
    null::text as provider, null::text as outcome, null::text as error, null::real as latency_ms, null::real as cost,
    null::json as detail
  from carillon.notifications n
  union all
  select e.tenant, e.notification_id, e.seq, e.at, e.type, e.from_status, e.to_status, e.attempt, e.token, e.worker, e.started_at,
    e.provider, e.outcome, e.error, e.latency_ms, e.cost, e.detail
  from carillon.events e;

-- The one place that writes `delivered`: by a provider's report, or by the reader of an inbox.
create function carillon.record_delivered(ids uuid[], tenants integer[], standing carillon.status[], by_provider text,
  latencies real[], details json[]) returns void
language sql as $$
  insert into carillon.events (notification_id, tenant, type, from_status, to_status, provider, latency_ms, detail)
  select id, tenant, 'delivered', stood, 'delivered', by_provider, latency, detail
  from unnest(ids, tenants, standing, latencies, details) as x(id, tenant, stood, latency, detail)
$$;


-- Acceptance: the one place where notifications come into being, whichever door they came through ---------------------------

create table carillon.idempotency (
  tenant     integer not null,
  key        text not null,
  id         uuid not null,
  hash       bytea not null,
  expires_at timestamptz not null,
  primary key (tenant, key)
);

-- Two requests are the same when their JSON values are; the key itself does not count.
create function carillon.fingerprint(request json) returns bytea
language sql immutable strict parallel safe as $$
  select sha256(convert_to((request::jsonb - 'idempotencyKey')::text, 'UTF8'))
$$;

-- How long an idempotency key is kept. `alter database … set carillon.keep_keys = '7 days'` changes it.
create function carillon.keep_keys() returns interval
language sql stable as $$ select coalesce(nullif(current_setting('carillon.keep_keys', true), ''), '24 hours')::interval $$;

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

-- The same, waiting no longer than `patience_ms` for a key that an open transaction holds: nobody waits in a shared batch for it. Then
-- one key after the other shows which those are; answers with their requests. After five times the patience, what was not tried
-- counts as held too.
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

-- Stores many validated requests in one statement. Each row: i id, t tenant, c channel, p priority,
-- u user id, d due at, e expires at, k idempotency key, r request.
--
-- Answers with one row, since nearly always nothing needs saying of the single request: the instant
-- of acceptance, and the few whose idempotency key was already taken, each with the id that holds the
-- key and whether its body is the same. With a `patience_ms` the requests whose key is held are left out and named in `held`; without
-- one, a caller in its own transaction waits as its own settings say.
create function carillon.accept(rows json, has_keys boolean, patience_ms integer default null,
  out accepted_at timestamptz, out replays json, out held json)
language plpgsql as $$
declare
  kept_out uuid[] := '{}';
  taken uuid[] := '{}';
begin
  accepted_at := carillon.now();
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
  ), offered as (
    insert into carillon.queue_later (due_at, priority, seq, tenant, id, expires_at)
    select due_at, priority, seq, tenant, id, expires_at from stored where due_at > accept.accepted_at
  )
  insert into carillon.queue_now (priority, seq, tenant, id, expires_at)
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


-- Sending from SQL: the rules of the contract, and the door -----------------------------------------------------------------

-- What a request may say, and what each channel needs: src/domain/notification.ts, written here by scripts/contract.ts.
create function carillon.contract() returns jsonb
language sql immutable parallel safe as $contract$ select '{"request":{"type":"object","required":["channel","content"],"properties":{"channel":{"enum":["email","push","sms","slack","webhook","inbox","console","file"]},"recipient":{"type":"object","properties":{"userId":{"type":"string","minLength":1,"maxLength":256,"pattern":"^([.]{0,2}[^.\\u0001-\\u001f\\u007f]|[.]{3})[^\\u0001-\\u001f\\u007f]*$","x-expects":"a single line of text, and not . or .. alone"},"email":{"type":"string","minLength":1,"maxLength":254,"pattern":"^[^\\u0001-\\u0020\\u007f@<>(),;:\"]+@[A-Za-z0-9\\u0080-\\uffff-]+([.][A-Za-z0-9\\u0080-\\uffff-]+)+$","x-expects":"an e-mail address"},"phone":{"type":"string","minLength":1,"maxLength":16,"pattern":"^[+][1-9][0-9]{6,14}$","x-expects":"a phone number like +33612345678"},"deviceTokens":{"type":"array","items":{"type":"string","minLength":1,"maxLength":4096,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"minItems":1,"maxItems":500},"slackChannel":{"type":"string","minLength":1,"maxLength":80,"pattern":"^[#@]?[A-Za-z0-9._-]+$","x-expects":"a Slack channel like C024BE91L"},"webhookUrl":{"type":"string","minLength":1,"maxLength":2048,"pattern":"^https?://[!-~]+$","x-expects":"an http or https URL"},"locale":{"type":"string","minLength":1,"maxLength":35,"pattern":"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$","x-expects":"a language tag like fr-CA"},"timezone":{"type":"string","minLength":1,"maxLength":64,"pattern":"^[A-Za-z][A-Za-z0-9_+/-]*$","x-expects":"a time zone like Europe/Paris"},"metadata":{"type":"object","patternProperties":{"^.*$":{}},"maxProperties":100}},"additionalProperties":false},"content":{"type":"object","properties":{"subject":{"type":"string","minLength":1,"maxLength":998,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"from":{"type":"string","minLength":1,"maxLength":254,"pattern":"^[^\\u0001-\\u0020\\u007f@<>(),;:\"]+@[A-Za-z0-9\\u0080-\\uffff-]+([.][A-Za-z0-9\\u0080-\\uffff-]+)+$","x-expects":"an e-mail address"},"fromName":{"type":"string","minLength":1,"maxLength":200,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"replyTo":{"type":"string","minLength":1,"maxLength":254,"pattern":"^[^\\u0001-\\u0020\\u007f@<>(),;:\"]+@[A-Za-z0-9\\u0080-\\uffff-]+([.][A-Za-z0-9\\u0080-\\uffff-]+)+$","x-expects":"an e-mail address"},"cc":{"type":"array","items":{"type":"string","minLength":1,"maxLength":254,"pattern":"^[^\\u0001-\\u0020\\u007f@<>(),;:\"]+@[A-Za-z0-9\\u0080-\\uffff-]+([.][A-Za-z0-9\\u0080-\\uffff-]+)+$","x-expects":"an e-mail address"},"minItems":1,"maxItems":24},"bcc":{"type":"array","items":{"type":"string","minLength":1,"maxLength":254,"pattern":"^[^\\u0001-\\u0020\\u007f@<>(),;:\"]+@[A-Za-z0-9\\u0080-\\uffff-]+([.][A-Za-z0-9\\u0080-\\uffff-]+)+$","x-expects":"an e-mail address"},"minItems":1,"maxItems":24},"headers":{"type":"object","properties":{},"additionalProperties":{"type":"string","minLength":1,"maxLength":900,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"maxProperties":20},"textBody":{"type":"string","minLength":1,"maxLength":262144},"htmlBody":{"type":"string","minLength":1,"maxLength":262144},"title":{"type":"string","minLength":1,"maxLength":1024},"body":{"type":"string","minLength":1,"maxLength":262144},"imageUrl":{"type":"string","minLength":1,"maxLength":2048,"pattern":"^https?://[!-~]+$","x-expects":"an http or https URL"},"clickAction":{"type":"string","minLength":1,"maxLength":2048,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"icon":{"type":"string","minLength":1,"maxLength":2048,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"badge":{"type":"integer","minimum":0,"maximum":1000000},"sound":{"type":"string","minLength":1,"maxLength":256,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"data":{"type":"object","patternProperties":{"^.*$":{}},"maxProperties":100},"templateId":{"type":"string","minLength":1,"maxLength":128,"pattern":"^[^\\u0001-\\u001f\\u007f]+$","x-expects":"a single line of text"},"templateVersion":{"type":"integer","minimum":1,"maximum":1000000000},"variables":{"type":"object","patternProperties":{"^.*$":{}},"maxProperties":100},"attachments":{"type":"array","items":{"type":"object","required":["filename","contentType","content"],"properties":{"filename":{"type":"string","minLength":1,"maxLength":255,"pattern":"^[^\\u0001-\\u001f\\u007f/\\\\]+$","x-expects":"a file name without a path"},"contentType":{"type":"string","minLength":1,"maxLength":127,"pattern":"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$","x-expects":"a media type like application/pdf"},"content":{"type":"string","minLength":1,"maxLength":262144,"pattern":"^[A-Za-z0-9+/]+={0,2}$","x-expects":"base64"}},"additionalProperties":false},"minItems":1,"maxItems":10}},"additionalProperties":false},"priority":{"enum":["urgent","high","normal","low"]},"scheduledFor":{"type":"string","format":"date-time","pattern":"^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$","maxLength":40,"x-expects":"an instant like 2027-01-01T09:00:00.000Z"},"expiresAt":{"type":"string","format":"date-time","pattern":"^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$","maxLength":40,"x-expects":"an instant like 2027-01-01T09:00:00.000Z"},"idempotencyKey":{"type":"string","minLength":1,"maxLength":256,"pattern":"^[ -~]+$","x-expects":"printable ASCII"},"retryPolicy":{"type":"object","properties":{"maxAttempts":{"type":"integer","minimum":1,"maximum":100},"backoffMultiplier":{"type":"number","minimum":1,"maximum":10},"maxBackoffMs":{"type":"integer","minimum":100,"maximum":604800000}},"additionalProperties":false},"onAmbiguous":{"enum":["resend","hold","reconcile"]},"metadata":{"type":"object","patternProperties":{"^.*$":{}},"maxProperties":100}},"additionalProperties":false},"needs":{"email":{"recipient":[["email"]],"content":[["subject","templateId"],["textBody","htmlBody","templateId"]]},"push":{"recipient":[["deviceTokens","userId"]],"content":[["title","body","templateId","data"]]},"sms":{"recipient":[["phone"]],"content":[["body","templateId"]]},"slack":{"recipient":[["slackChannel","webhookUrl"]],"content":[["body","templateId"]]},"webhook":{"recipient":[["webhookUrl"]],"content":[["body","data","title","templateId"]]},"inbox":{"recipient":[["userId"]],"content":[["title","body","templateId"]]},"console":{"recipient":[],"content":[]},"file":{"recipient":[],"content":[]}},"headers":{"name":"^[!-9;-~]{1,76}$","reserved":["from","sender","to","cc","bcc","reply-to","subject","date","message-id","mime-version","received","return-path","content-type","content-transfer-encoding","content-disposition","dkim-signature","list-unsubscribe","list-unsubscribe-post"]}}'::jsonb $contract$;

create function carillon.pointer(name text) returns text
language sql immutable strict parallel safe as $$ select replace(replace(name, '~', '~0'), '/', '~1') $$;

-- Every fault of a value against a schema: the same walk as src/domain/schema.ts, in the same words.
create function carillon.faults_of(schema jsonb, given jsonb, path text) returns table (fault_path text, message text)
language plpgsql stable as $$
declare
  kind text := jsonb_typeof(given);
  wanted text := schema ->> 'type';
  expected jsonb := coalesce(schema -> 'enum', case when schema ? 'const' then jsonb_build_array(schema -> 'const') end);
  words text;
  size integer;
  name text;
  item jsonb;
  rest jsonb := coalesce(schema -> 'additionalProperties', 'true');
begin
  if expected is not null then
    if not expected @> jsonb_build_array(given) then
      select string_agg(w, ', ' order by n) into words from jsonb_array_elements_text(expected) with ordinality as x(w, n);
      return query select path, 'must be ' || case when jsonb_array_length(expected) > 1 then 'one of ' else '' end || words;
    end if;
    return;
  end if;

  if wanted is not null and not (kind = wanted or kind = 'number' and wanted = 'integer' and given::numeric % 1 = 0) then
    return query select path, 'must be ' || case wanted when 'string' then 'a string' when 'integer' then 'a whole number'
      when 'number' then 'a number' when 'boolean' then 'true or false' when 'object' then 'an object' else 'a list' end;
    return;
  end if;

  if kind = 'string' then
    words := given #>> '{}';
    size := char_length(words);
    if size < (schema ->> 'minLength')::integer then
      return query select path, format('must have at least %s character%s', schema ->> 'minLength',
        case when schema ->> 'minLength' = '1' then '' else 's' end);
    elsif size > (schema ->> 'maxLength')::integer then
      return query select path, format('must have at most %s characters', schema ->> 'maxLength');
    elsif words !~ (schema ->> 'pattern') then
      return query select path, 'must be ' || coalesce(schema ->> 'x-expects', 'like ' || (schema ->> 'pattern'));
    elsif (case when schema ->> 'format' = 'date-time' then carillon.instant(words) is null end) then
      return query select path, 'must be a day that exists';
    end if;
  elsif kind = 'number' then
    if given::numeric < (schema ->> 'minimum')::numeric then
      return query select path, 'must be at least ' || (schema ->> 'minimum');
    end if;
    if given::numeric > (schema ->> 'maximum')::numeric then
      return query select path, 'must be at most ' || (schema ->> 'maximum');
    end if;
  elsif kind = 'array' then
    size := jsonb_array_length(given);
    if size < (schema ->> 'minItems')::integer then
      return query select path, format('must have at least %s of them', schema ->> 'minItems');
    end if;
    if size > (schema ->> 'maxItems')::integer then
      return query select path, format('must have at most %s of them', schema ->> 'maxItems');
    elsif schema ? 'items' then
      return query select f.* from jsonb_array_elements(given) with ordinality as x(item, n),
        carillon.faults_of(schema -> 'items', x.item, path || '/' || (n - 1)) f;
    end if;
  elsif kind = 'object' then
    return query select path || '/' || carillon.pointer(r), 'is required'
      from jsonb_array_elements_text(coalesce(schema -> 'required', '[]')) r where not given ? r;
    select count(*) into size from jsonb_object_keys(given);
    if size > (schema ->> 'maxProperties')::integer then
      return query select path, format('must have at most %s fields', schema ->> 'maxProperties');
      return;
    end if;
    for name, item in select * from jsonb_each(given) loop
      if schema -> 'properties' ? name then
        return query select * from carillon.faults_of(schema -> 'properties' -> name, item, path || '/' || carillon.pointer(name));
      elsif rest = 'false' then
        return query select path || '/' || carillon.pointer(name), 'is not a known field';
      elsif jsonb_typeof(rest) = 'object' then
        return query select * from carillon.faults_of(rest, item, path || '/' || carillon.pointer(name));
      end if;
    end loop;
  end if;
end
$$;

create function carillon.is_time_zone(name text) returns boolean
language plpgsql stable as $$
begin
  return timezone(name, carillon.now()) is not null;
exception when invalid_parameter_value then
  return false;
end
$$;

-- What no JSON reader or JavaScript process should be handed, wherever it stands in the request.
create function carillon.unstorable(request jsonb) returns table (fault_path text, message text)
language sql stable as $$
  with recursive inside(path, value, depth) as (
    select '', request, 0
    union all
    select parent.path || '/' || child.name, child.value, parent.depth + 1
    from inside parent, lateral (
      select key as name, value from jsonb_each(case jsonb_typeof(parent.value) when 'object' then parent.value else '{}' end)
      union all
      select (n - 1)::text, x.value from jsonb_array_elements(case jsonb_typeof(parent.value) when 'array' then parent.value
        else '[]' end) with ordinality as x(value, n)
    ) child
    where parent.depth < 32
  )
  select path, 'must not be nested deeper than 32 levels' from inside
  where depth = 32 and jsonb_typeof(value) in ('object', 'array')
  union all
  select path, 'is not a known field' from inside where path like '%/\_\_proto\_\_'
  union all
  select path, 'must be a finite number' from inside
  where jsonb_typeof(value) = 'number' and abs(value::numeric) > 1.7976931348623157e308
$$;

-- Every fault of a request to send; the same rules as src/domain/validate.ts.
create function carillon.faults(request jsonb) returns jsonb
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

-- Sends from SQL, in the caller's own transaction: rolled back means never sent. Returns the id.
-- Runs with the rights of its owner, so that an application's role needs no more than
-- `grant usage on schema carillon` and `grant execute on function carillon.send`.
create function carillon.send(request jsonb, tenant text default 'default') returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  found constant jsonb := carillon.faults(request);
  tenant_id constant integer := (select t.id from carillon.tenants t where t.name = send.tenant);
  id constant uuid := carillon.new_id();
  replays json;
begin
  if found <> '[]' then
    raise exception 'VALIDATION_FAILED: % %', found -> 0 ->> 'path', found -> 0 ->> 'message'
      using errcode = 'invalid_parameter_value', detail = found::text;
  end if;
  if tenant_id is null then
    raise exception 'NOT_FOUND: there is no tenant %', tenant using errcode = 'invalid_parameter_value';
  end if;
  select a.replays into replays from carillon.accept(json_build_array(json_build_object(
    'i', id, 't', tenant_id, 'c', request ->> 'channel',
    'p', array_position(array['urgent', 'high', 'normal', 'low'], coalesce(request ->> 'priority', 'normal')) - 1,
    'u', request -> 'recipient' ->> 'userId', 'd', request ->> 'scheduledFor', 'e', request ->> 'expiresAt',
    'k', request ->> 'idempotencyKey', 'r', request)), request ? 'idempotencyKey') a;
  if replays is null then return id; end if;
  if not (replays -> 0 ->> 'same')::boolean then
    raise exception 'IDEMPOTENCY_MISMATCH: the idempotency key % was used with another body', request ->> 'idempotencyKey'
      using errcode = 'unique_violation';
  end if;
  return (replays -> 0 ->> 'id')::uuid;
end
$$;
revoke execute on function carillon.send(jsonb, text) from public;


-- Changes -------------------------------------------------------------------------------------------------------------------

-- Sends ended notifications again, with a fresh budget of attempts. Answers with those that it put back.
--
-- Two calls for the same notification are put in a row by the lock on its row: the second statement's snapshot then
-- sees what the first call did. An expiry that has passed is dropped: whoever asks for a retry wants it sent.
create function carillon.retry(of_tenant integer, ids uuid[]) returns setof uuid
language plpgsql as $$
begin
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = any (ids) order by n.id for update;
  return query
    with ended as materialized (
      select r.id, r.seq, r.priority, r.expires_at, r.status from carillon.records r
      where r.tenant = of_tenant and r.id = any (ids) and r.status in ('failed', 'ambiguous', 'expired', 'cancelled')
    ), offered as (
      insert into carillon.queue_now (priority, seq, tenant, id, expires_at)
      select e.priority, e.seq, of_tenant, e.id, case when e.expires_at > carillon.now() then e.expires_at end from ended e
    )
    insert into carillon.events (notification_id, tenant, type, from_status, to_status)
    select e.id, of_tenant, 'retried', e.status, 'queued' from ended e
    returning notification_id;
end
$$;

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
    select * into waiting from carillon.queue_hold(n.seq);
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

  status := carillon.queue_move(n.seq, due_at, priority, expires_at);
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


-- Hints: whoever sleeps is told that something came -------------------------------------------------------------------------

-- Our own processes do that themselves, after their commits and many rows
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
create trigger later_insert_hint after insert on carillon.later referencing new table as changed
  for each statement when (carillon.gives_hints()) execute function carillon.hint_due();
create trigger later_update_hint after update on carillon.later referencing new table as changed
  for each statement when (carillon.gives_hints()) execute function carillon.hint_due();


-- Schedules and reminders ---------------------------------------------------------------------------------------------------

-- What cannot be fired is put off by itself, and every tenant has its turn: a schedule, or a line of a plan, is looked at again at
-- put_off_until; its own time stays what it was. Its turn comes at the later of the two.

-- One second, then twice as long each time, a quarter of an hour at most.
create function carillon.backoff(failures integer) returns interval language sql immutable as $$
  select least(interval '15 minutes', interval '1 second' * 2 ^ least(failures, 20))
$$;

-- How many bytes of JSON a notice's requests come to, all recipients together: what a scheduler must know before it reads it.
create function carillon.bytes_of(notice json) returns bigint language sql immutable parallel safe as $$
  select coalesce(json_array_length(notice -> 'recipients'), 1)::bigint
      * (octet_length(notice::text) - coalesce(octet_length((notice -> 'recipients')::text), 0))
    + coalesce(octet_length((notice -> 'recipients')::text), 0)
$$;

-- What fires again and again. next_at is the tick to come; none when paused or over.
create table carillon.schedules (
  tenant        integer not null references carillon.tenants,
  key           text not null,
  cron          text,
  every         text,
  timezone      text not null,
  from_at       timestamptz not null,
  until_at      timestamptz,
  catch_up      text not null check (catch_up in ('once', 'skip')),
  notice        json not null,
  next_at       timestamptz,
  paused_at     timestamptz,
  created_at    timestamptz not null default carillon.now(),
  updated_at    timestamptz not null default carillon.now(),
  put_off_until timestamptz,
  failures      integer not null default 0,
  error         text,
  primary key (tenant, key),
  check ((cron is null) <> (every is null)),
  check (paused_at is null or next_at is null)
);
create index schedules_by_turn on carillon.schedules (greatest(next_at, put_off_until)) where next_at is not null;
create index schedules_by_tenant on carillon.schedules (tenant, greatest(next_at, put_off_until)) where next_at is not null;

-- Replicas of 0.2.0 that still run while others have been upgraded read, lock and write it under its old name.
create view carillon.recurrences as
  select tenant, key, cron, every, timezone, from_at, until_at, catch_up, notice, next_at, paused_at, created_at, updated_at,
    put_off_until, failures, error
  from carillon.schedules;

-- What became of each tick. The key makes a second firing of the same tick impossible.
create table carillon.runs (
  tenant        integer not null,
  key           text not null,
  tick          timestamptz not null,
  at            timestamptz not null default carillon.now(),
  outcome       text not null check (outcome in ('sending', 'sent', 'skipped', 'failed')),
  skipped       integer not null,
  notifications uuid[] not null default '{}',
  error         text,
  primary key (tenant, key, tick),
  foreign key (tenant, key) references carillon.schedules on delete cascade
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
  created_at   timestamptz not null default carillon.now(),
  updated_at   timestamptz not null default carillon.now(),
  bytes        bigint generated always as (carillon.bytes_of(notice)) stored,
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
  updated_at timestamptz not null default carillon.now(),
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
  outcome       text check (outcome in ('sending', 'sent', 'missed', 'failed')),
  ended_at      timestamptz,
  notifications uuid[] not null default '{}',
  error         text,
  put_off_until timestamptz,
  failures      integer not null default 0,
  primary key (tenant, key, at, before),
  foreign key (tenant, key) references carillon.reminders on delete cascade,
  check ((outcome is null) = (ended_at is null))
);
create index reminder_plan_by_turn on carillon.reminder_plan (greatest(due_at, put_off_until)) where outcome is null;
create index reminder_plan_by_tenant on carillon.reminder_plan (tenant, greatest(due_at, put_off_until)) where outcome is null;

-- A scope's change that still has to reach its reminders: done up to and including `reached`. Re-plans take turns as well: the one
-- that was worked at longest ago is next.
create table carillon.replans (
  tenant        integer not null,
  scope         text not null,
  reached       text not null default '',
  done          integer not null default 0,
  total         integer not null,
  started_at    timestamptz not null default carillon.now(),
  finished_at   timestamptz,
  put_off_until timestamptz,
  primary key (tenant, scope)
);
create index replans_to_do on carillon.replans (greatest(started_at, put_off_until)) where finished_at is null;

-- A notice that is too large for one transaction is accepted chunk by chunk, from here: `notice` is what it was when its time
-- came, `reached` how many of its recipients have theirs. It belongs to a line of a plan or to a run, and goes with it.
create table carillon.broadcasts (
  id         bigint generated always as identity primary key,
  tenant     integer not null references carillon.tenants,
  notice     json not null,
  expires_at timestamptz,
  line_id    bigint references carillon.reminder_plan (id) on delete cascade,
  run_key    text,
  run_tick   timestamptz,
  reached    integer not null default 0,
  turn_at    timestamptz not null default carillon.now(),
  failures   integer not null default 0,
  foreign key (tenant, run_key, run_tick) references carillon.runs on delete cascade,
  check ((line_id is null) <> (run_key is null)),
  check ((run_key is null) = (run_tick is null))
);
create index broadcasts_by_turn on carillon.broadcasts (turn_at);
create index broadcasts_of_line on carillon.broadcasts (line_id) where line_id is not null;
create index broadcasts_of_run on carillon.broadcasts (tenant, run_key, run_tick) where run_key is not null;


-- Templates -----------------------------------------------------------------------------------------------------------------

-- A version, once stored, is never changed; a template says which of its versions is sent.
--
-- A deleted template keeps its row, without an active version, so that its numbers are not given out again: a
-- notification that still waits names the version it was written for, and must not get another text.
create table carillon.templates (
  tenant         integer not null references carillon.tenants,
  id             text not null,
  channel        text not null,
  latest_version integer not null,
  active_version integer,
  primary key (tenant, id),
  check (active_version <= latest_version)
);

create table carillon.template_versions (
  tenant     integer not null,
  id         text not null,
  version    integer not null,
  channel    text not null,
  name       text not null,
  content    json not null,
  engine     text not null check (engine in ('liquid')),
  strict     boolean not null,
  created_at timestamptz not null default carillon.now(),
  primary key (tenant, id, version),
  foreign key (tenant, id) references carillon.templates
);


-- Channels: accounts, devices, whom nothing may be sent to, what providers said later, and what dev kept --------------------

-- A tenant's own account with a provider, sealed with AES-256-GCM.
create table carillon.credentials (
  tenant     integer not null references carillon.tenants,
  provider   text not null,
  sealed     text not null,
  updated_at timestamptz not null default carillon.now(),
  primary key (tenant, provider)
);

-- A token may be longer than an index takes (2,704 bytes): the index holds a digest. It is of UTF-8 whatever the database's
-- encoding, so that it is immutable, which convert_to() by itself is not called.
create function carillon.digest(value text) returns bytea
language sql immutable strict parallel safe as $$ select sha256(convert_to(value, 'UTF8')) $$;

-- Where a user can be pushed to. A token belongs to one user at a time: whoever registered it last.
create table carillon.devices (
  tenant       integer not null references carillon.tenants,
  token        text not null,
  user_id      text not null,
  platform     text not null check (platform in ('ios', 'android', 'web')),
  subscription json,
  created_at   timestamptz not null default carillon.now(),
  updated_at   timestamptz not null default carillon.now(),
  dead_at      timestamptz,
  dead_reason  text
);
create unique index devices_by_token on carillon.devices (tenant, carillon.digest(token));
create index devices_of_user on carillon.devices (tenant, user_id);
-- A user may have any number of devices; those that were registered last are found without looking at the others.
create index devices_of_user_active on carillon.devices (tenant, user_id, updated_at) where dead_at is null;
create index devices_dead on carillon.devices (dead_at) where dead_at is not null;

-- Nothing more is sent to these.
create table carillon.suppressions (
  tenant  integer not null references carillon.tenants,
  address text not null,
  why     text not null check (why in ('bounce', 'complaint', 'manual')),
  reason  text,
  at      timestamptz not null default carillon.now(),
  primary key (tenant, address)
);

-- By which receipt a provider will speak of a notification; only of providers that report. Reports are about messages of the account
-- that signed them, and of no other: `owner` is the tenant's number for its own account, 0 for the deployment's.
create table carillon.receipts (
  provider        text not null,
  receipt         text not null,
  tenant          integer not null,
  notification_id uuid not null,
  at              timestamptz not null default carillon.now(),
  owner           integer not null default 0,
  primary key (provider, owner, receipt)
);
create index receipts_by_age on carillon.receipts (at);

-- Reports as they came. One that outran our own commit waits here for its receipt. Of a mail with copies every recipient is reported:
-- `address` tells them apart.
create table carillon.reports (
  provider    text not null,
  report_id   text not null,
  receipt     text not null,
  kind        text not null check (kind in ('delivered', 'failed')),
  at          timestamptz not null,
  reason      text,
  code        text,
  suppress    text,
  why         text check (why in ('bounce', 'complaint')),
  received_at timestamptz not null default carillon.now(),
  applied_at  timestamptz,
  owner       integer not null default 0,
  address     text,
  primary key (provider, owner, report_id)
);
create index reports_waiting on carillon.reports (received_at) where applied_at is null;
create index reports_waiting_of_owner on carillon.reports (owner, provider) where applied_at is null;

-- Moves a notification by a report: sent becomes delivered, or failed after all. A failure counts whichever of the two came first, so
-- that the order in which reports arrive does not matter. What becomes of a copy says nothing about the notification, which is the
-- recipient's; an address that bounces is suppressed all the same. The report is locked by the caller.
create function carillon.apply_report(p carillon.reports, of_tenant integer, of_id uuid) returns void
language plpgsql as $$
declare
  standing carillon.status;
  is_copy boolean;
  detail constant json := json_strip_nulls(json_build_object('reportedAt', p.at, 'code', p.code, 'receipt', p.receipt));
begin
  -- Reports of the same notification one after the other.
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = of_id for update;
  select n.status into standing from carillon.records n where n.tenant = of_tenant and n.id = of_id;
  select lower(p.address) <> lower(n.request #>> '{recipient,email}') and exists (
      select from json_array_elements_text(n.request #> '{content,cc}') c where lower(c) = lower(p.address)
      union all
      select from json_array_elements_text(n.request #> '{content,bcc}') c where lower(c) = lower(p.address))
  into is_copy from carillon.notifications n where n.tenant = of_tenant and n.id = of_id;
  if is_copy is true then
    null;
  elsif p.kind = 'delivered' and standing = 'sent' then
    perform carillon.record_delivered(array[of_id], array[of_tenant], array[standing], p.provider, null, array[detail]);
  elsif p.kind = 'failed' and standing in ('sent', 'delivered') then
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, provider, error, detail)
    values (of_id, of_tenant, 'bounced', standing, 'failed', p.provider, p.reason, detail);
  end if;
  if p.suppress is not null then
    insert into carillon.suppressions (tenant, address, why, reason) values (of_tenant, lower(p.suppress), p.why, p.reason)
    on conflict do nothing;
  end if;
  update carillon.reports x set applied_at = carillon.now()
  where x.provider = p.provider and x.owner = p.owner and x.report_id = p.report_id;
end
$$;

-- Applies those of these reports whose receipt is known. Answers with how many.
create function carillon.apply_reports_of(of_provider text, of_owner integer, ids text[]) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  r record;
  applied integer := 0;
begin
  for r in
    select p as report, x.tenant, x.notification_id from carillon.reports p
    join carillon.receipts x on x.provider = p.provider and x.owner = p.owner and x.receipt = p.receipt
    where p.provider = of_provider and p.owner = of_owner and p.report_id = any (ids) and p.applied_at is null
    order by p.received_at, p.report_id for update of p skip locked
  loop
    perform carillon.apply_report(r.report, r.tenant, r.notification_id);
    applied := applied + 1;
  end loop;
  return applied;
end
$$;

-- The same for those that came before their receipt.
create function carillon.apply_reports(most integer) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  r record;
  applied integer := 0;
begin
  for r in
    select p as report, x.tenant, x.notification_id from carillon.reports p
    join carillon.receipts x on x.provider = p.provider and x.owner = p.owner and x.receipt = p.receipt
    where p.applied_at is null order by p.received_at limit most for update of p skip locked
  loop
    perform carillon.apply_report(r.report, r.tenant, r.notification_id);
    applied := applied + 1;
  end loop;
  return applied;
end
$$;

-- What would have gone out, for developers without credentials. The latest few.
create table carillon.dev_messages (
  id              bigint generated always as identity primary key,
  tenant          integer not null,
  notification_id uuid not null,
  channel         text not null,
  message         json not null,
  at              timestamptz not null default carillon.now()
);
create index dev_messages_of_tenant on carillon.dev_messages (tenant, id);


-- Guards: limits that hold everywhere, breakers, locks ----------------------------------------------------------------------

-- One row per key that is limited. Instants are milliseconds of this database's true clock.
create table carillon.limits (
  key           text primary key,
  -- GCRA's theoretical arrival times, by period: second, minute, hour, day.
  tats          float8[] not null default '{0,0,0,0}',
  -- Nobody before this: the provider has said so.
  blocked_until float8 not null default 0,
  -- The limits that the line was made for. Under others it is over: whoever raises a limit does not want to wait for it.
  shape         text,
  -- Who was refused waits in a line, one per priority: the last instant that was given out, the newest that waits, and the
  -- arrival times as they will be when all of them are through (four for each priority).
  line_at       float8[] not null default '{0,0,0,0}',
  line_seq      float8[] not null default '{0,0,0,0}',
  line_tats     float8[] not null default '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}',
  -- From then on the row says nothing that its absence would not.
  idle_at       float8 not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- Takes from several keys at once, each with several limits: all or nothing. One after the other, as given:
--   [{ "q": seq, "r": rank, "p": patience in ms, "k": [{ "k": key, "n": how many, "l": [[period, interval in ms, burst], …] }, …] }, …]
-- Answers for each: granted or not, whether all that was asked for, the milliseconds to wait, and the key that made it wait.
--
-- Whoever needs to wait no longer than its patience is granted a moment to come. Whoever needs to wait longer gets nothing but an
-- instant of its own: the one at which it will be allowed if everybody before it in the line comes as told. Newcomers do not
-- overtake a line of their own or a higher priority; seq tells who waits already.
create function carillon.take_limits(asks jsonb)
returns table (is_granted boolean, is_full boolean, wait_ms float8, wait_key text)
language plpgsql as $$
declare
  now_ms float8;
  ask jsonb;
  item jsonb;
  one jsonb;
  every float8;
  burst float8;
  held carillon.limits;
  keys constant text[] := array(
    select distinct x ->> 'k' from jsonb_array_elements(asks) a, jsonb_array_elements(a -> 'k') x order by 1);
  rank integer;
  seq float8;
  n float8;
  p integer;
  allowed_at float8;  -- when all keys allow it, by what was taken
  step float8;        -- the interval of the limit that says so
  own float8;         -- when this key does
  must_line boolean;
  is_member boolean;
  has_line boolean;
  tries_one boolean;
  ahead float8[];
  locked integer;
  -- An arrival time is never further away than a whole burst and the longest patience, unless the limit was raised since.
  spare constant float8 := 1000;
begin
  -- Always in the same order, so that no two callers wait for each other. One that was idle may just have been forgotten.
  loop
    insert into carillon.limits (key) select k from unnest(keys) k
      where not exists (select from carillon.limits l where l.key = k) order by k on conflict do nothing;
    perform from carillon.limits l where l.key = any (keys) order by l.key for update;
    get diagnostics locked = row_count;
    exit when locked = cardinality(keys);
  end loop;

  for ask in select a from jsonb_array_elements(asks) with ordinality as x(a, o) order by o loop
    -- Only now: the clock must not be older than what others took before us.
    now_ms := date_part('epoch', clock_timestamp()) * 1000;
    rank := (ask ->> 'r')::integer;
    seq := (ask ->> 'q')::float8;
    tries_one := false;
    loop
      allowed_at := now_ms;
      step := 0;
      wait_key := null;
      must_line := false;
      is_member := false;
      for x in 0..jsonb_array_length(ask -> 'k') - 1 loop
        item := ask -> 'k' -> x;
        select * into held from carillon.limits l where l.key = item ->> 'k';
        if held.shape is distinct from item ->> 'l' then held.line_at := '{0,0,0,0}'; end if;
        n := case when tries_one then 1 else (item ->> 'n')::float8 end;
        if held.blocked_until > allowed_at then
          allowed_at := held.blocked_until;
          step := 0;
          wait_key := held.key;
        end if;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          own := least(held.tats[p], now_ms + burst * every + spare)
            + (n - burst) * every;
          if own > allowed_at then
            allowed_at := own;
            step := every;
            wait_key := held.key;
          end if;
        end loop;
        has_line := held.line_at[rank + 1] > now_ms;
        if has_line and seq <= held.line_seq[rank + 1] then
          is_member := true;
        elsif has_line or rank > 0 and held.line_at[1] > now_ms or rank > 1 and held.line_at[2] > now_ms
          or rank > 2 and held.line_at[3] > now_ms then
          must_line := true;
        end if;
      end loop;
      exit when tries_one or (allowed_at - now_ms <= (ask ->> 'p')::float8 and not must_line);
      tries_one := true;
    end loop;

    if not must_line and allowed_at - now_ms <= (ask ->> 'p')::float8 then
      for x in 0..jsonb_array_length(ask -> 'k') - 1 loop
        item := ask -> 'k' -> x;
        select * into held from carillon.limits l where l.key = item ->> 'k';
        if held.shape is distinct from item ->> 'l' then held.line_at := '{0,0,0,0}'; end if;
        n := case when tries_one then 1 else (item ->> 'n')::float8 end;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          held.tats[p] := greatest(allowed_at,
            least(held.tats[p], now_ms + burst * every + spare)) + n * every;
          held.idle_at := greatest(held.idle_at, held.tats[p]);
        end loop;
        update carillon.limits l set tats = held.tats, idle_at = held.idle_at, line_at = held.line_at, shape = item ->> 'l'
        where l.key = held.key;
      end loop;
      is_granted := true;
    elsif is_member and not must_line and allowed_at - now_ms < 0.9 * step then
      -- The line is a little late. Who lost its turn to another waits a whole step, and goes to the end instead.
      is_granted := false;
    else
      for x in 0..jsonb_array_length(ask -> 'k') - 1 loop
        item := ask -> 'k' -> x;
        select * into held from carillon.limits l where l.key = item ->> 'k';
        if held.shape is distinct from item ->> 'l' then held.line_at := '{0,0,0,0}'; end if;
        own := greatest(now_ms, held.blocked_until);
        ahead := held.tats;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          ahead[p] := least(ahead[p], now_ms + burst * every + spare);
        end loop;
        for r in 0..rank loop
          if held.line_at[r + 1] > now_ms then
            for i in 1..4 loop
              ahead[i] := greatest(ahead[i], held.line_tats[r * 4 + i]);
            end loop;
          end if;
        end loop;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          own := greatest(own, ahead[p] + (1 - burst) * every);
        end loop;
        -- A key that has room is no reason to wait, and gets no line.
        continue when own <= now_ms;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          ahead[p] := greatest(ahead[p], own) + every;
        end loop;
        for i in 1..4 loop
          held.line_tats[rank * 4 + i] := ahead[i];
        end loop;
        held.line_seq[rank + 1] := case when held.line_at[rank + 1] > now_ms then greatest(held.line_seq[rank + 1], seq) else seq end;
        held.line_at[rank + 1] := own;
        update carillon.limits l set line_at = held.line_at, line_seq = held.line_seq, line_tats = held.line_tats,
          shape = item ->> 'l', idle_at = greatest(l.idle_at, own) where l.key = held.key;
        if own >= allowed_at then
          allowed_at := own;
          wait_key := held.key;
        end if;
      end loop;
      is_granted := false;
    end if;
    is_full := is_granted and not tries_one;
    wait_ms := greatest(0, allowed_at - now_ms);
    return next;
  end loop;
end
$$;

-- What workers tell each other about providers, and about what tenants' URLs lead to. A hint: each goes by what it sees itself.
create table carillon.breakers (
  account      text primary key,
  state        text not null check (state in ('closed', 'half-open', 'open')),
  -- An open one lets nobody through before this.
  until        timestamptz not null,
  openings     integer not null,
  reason       text,
  -- The provider asked for a pause.
  paused_until timestamptz,
  worker       integer not null,
  changed_at   timestamptz not null default clock_timestamp(),
  tenant       integer
);
create index breakers_of_tenant on carillon.breakers (tenant) where tenant is not null;
comment on column carillon.breakers.tenant is 'Whose receiver it is; null for an account with a provider.';

-- Locks on deliveries, for installations that ask for them (CARILLON_LOCKS=postgres).
create sequence carillon.lock_tokens;

-- A released lock keeps its row for a while: the next holder's token is then drawn under the row's lock, and so is
-- greater than the last one's whatever the two were waiting for.
create table carillon.locks (
  key    text primary key,
  holder text not null,
  token  bigint not null,
  until  timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);


-- Inboxes: what each user was told, numbered without gaps -------------------------------------------------------------------

-- One row per user who was ever told something. Its lock gives out the numbers of the items, so that of two
-- transactions the one with the lower numbers is visible first: a reader who has seen seq has seen everything before it.
--
-- epoch tells this numbering from an earlier or a later one of the same user; it is taken from the true clock, so that none comes
-- twice. Items up to forgotten_seq may be gone: who has read less than that cannot resume. Up to acked_seq, readers have said that
-- they have everything. changed_xid is the transaction that changed the inbox last; see carillon.changed_inboxes().
create table carillon.inboxes (
  tenant        integer not null references carillon.tenants,
  user_id       text not null,
  epoch         bigint not null default floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
  last_seq      bigint not null default 0,
  forgotten_seq bigint not null default 0,
  acked_seq     bigint not null default 0,
  changed_xid   xid8 not null default pg_current_xact_id(),
  changed_at    timestamptz not null default carillon.now(),
  primary key (tenant, user_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index inboxes_changed on carillon.inboxes (changed_xid);

create table carillon.inbox_items (
  tenant          integer not null,
  user_id         text not null,
  seq             bigint not null,
  notification_id uuid not null,
  category        text,
  title           text,
  body            text,
  data            json,
  link            text,
  created_at      timestamptz not null default carillon.now(),
  acked_at        timestamptz,
  delivered_at    timestamptz,
  read_at         timestamptz,
  archived_at     timestamptz,
  primary key (tenant, user_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.05);
-- A resend finds its item; ids are in order of acceptance, so the retention goes by it too.
create unique index inbox_items_of_notification on carillon.inbox_items (notification_id);
create index inbox_items_unread on carillon.inbox_items (tenant, user_id) where read_at is null and archived_at is null;
-- Acknowledged before the sender's own commit: these wait to become delivered.
create index inbox_items_acked on carillon.inbox_items (acked_at) where acked_at is not null and delivered_at is null;

-- Like the queue's, these statements were written for their indexes: a plan made while a table was empty must not read it from
-- end to end once it is full.

-- Stores many items in one statement, each notification's once. Each row: i notification, t tenant, u user, c category,
-- h title, b body, d data, l link. Answers with how many were new.
create function carillon.store_items(rows json) returns integer
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

-- Which inboxes changed since an earlier look, exactly: a transaction that was under way at that look is found at the first
-- look after its commit, however late. An index on a time or a number could not promise that. `seen` is the snapshot that the
-- earlier look answered with; null asks for the snapshot alone. Transactions to come are left out, so that a database that was
-- restored into another server, where numbers begin anew, costs no more than others.
create function carillon.changed_inboxes(seen pg_snapshot, out snapshot pg_snapshot, out is_older boolean, out changed json)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  snapshot := pg_current_snapshot();
  is_older := coalesce(pg_snapshot_xmax(snapshot) < pg_snapshot_xmax(seen), false);
  select json_agg(json_build_array(x.tenant, x.user_id)) into changed from (
    select b.tenant, b.user_id from carillon.inboxes b
    where b.changed_xid >= pg_snapshot_xmax(seen) and b.changed_xid < pg_snapshot_xmax(snapshot)
    union
    select b.tenant, b.user_id from carillon.inboxes b
    where b.changed_xid = any (array(select pg_snapshot_xip(seen)))
  ) x;
end
$$;

-- Marks items of one user, at most a thousand, and answers with the notifications of those that changed: after a thousand there may
-- be more. The inbox is locked first, as everywhere, and whoever stores items for many waits for that lock.
create function carillon.mark_items(of_tenant integer, of_user text, verb text, ids uuid[], of_category text, up_to bigint)
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

-- Moves notifications whose items were acknowledged from sent to delivered, and answers with how many, and how many wait: a
-- reader may acknowledge faster than the sender commits. What is not sent yet stays for the next call. Without ids it is about
-- those that have waited longest.
create function carillon.deliver_acked(ids uuid[], most integer, out moved integer, out waiting integer)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  done record;
begin
  ids := coalesce(ids, array(
    select i.notification_id from carillon.inbox_items i
    where i.acked_at is not null and i.delivered_at is null and i.acked_at > carillon.now() - interval '1 day'
    order by i.acked_at limit most));
  with acked as materialized (
    select i.ctid as place, i.tenant, i.notification_id, i.created_at, i.acked_at from carillon.inbox_items i
    where i.notification_id = any (ids) and i.acked_at is not null and i.delivered_at is null
    order by i.notification_id for update skip locked
  ), standing as materialized (
    select a.*, (select r.status from carillon.records r where r.tenant = a.tenant and r.id = a.notification_id) as status
    from acked a
  ), delivered as (
    update carillon.inbox_items i set delivered_at = s.acked_at from standing s
    where i.ctid = s.place and i.delivered_at is null and s.status in ('sent', 'ambiguous')
    returning s.*
  )
  select count(*) as n, (select count(*) from acked) as asked, array_agg(notification_id) as ids, array_agg(tenant) as tenants,
    array_agg(status) as standing, array_agg((extract(epoch from acked_at - created_at) * 1000)::real) as latencies,
    array_agg(json_build_object('ackedAt', acked_at)) as details
  into done from delivered;
  perform carillon.record_delivered(done.ids, done.tenants, done.standing, 'inbox', done.latencies, done.details);
  moved := done.n;
  waiting := done.asked - done.n;
end
$$;


-- Who runs ------------------------------------------------------------------------------------------------------------------

-- Who holds leases. A process is a new worker each time it starts. Heartbeats go by the true clock.
create table carillon.workers (
  id          integer generated always as identity primary key,
  name        text not null unique,
  started_at  timestamptz not null default now(),
  seen_at     timestamptz not null default now(),
  stopped_at  timestamptz,
  stats       json not null default '{}'
);

-- Who leads what, until when.
create table carillon.leaders (
  name   text primary key,
  holder text not null,
  term   bigint not null,
  until  timestamptz not null
);


-- Housekeeping in small steps: no statement takes longer, or is in anybody's way for longer, because there is much to do -----

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
    if exists (select from carillon.queue_entries where id >= first and id < last) then return false; end if;
    if look = 1 then execute format('lock table only carillon.%I in exclusive mode', 'notifications_' || week); end if;
  end loop;
  execute format('drop table carillon.%I, carillon.%I', 'notifications_' || week, 'events_' || week);
  return true;
end
$$;

-- Looks at the next notifications of a partition ('20260105', or 'default') in the order of its key, and deletes those
-- that are over, with their events. Answers with how many, and with how far it came; null at the end.
--
-- Locked first, then looked at again: what is being sent again at the same time is either skipped or seen to wait.
create function carillon.thin_out(part text, before timestamptz, after_tenant integer, after_id uuid, most integer,
  out deleted integer, out last_tenant integer, out last_id uuid)
language plpgsql as $$
declare
  is_over constant text := 'n.id < carillon.first_id($2) and n.accepted_at <= $2 and not carillon.queue_has(n.seq)';
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

-- Items whose time is over, `most` at a time, also of one inbox that has a million, and inboxes that nobody used since. Whoever has
-- not read what goes is told to load the list anew.
create function carillon.forget_items(before timestamptz, most integer) returns integer
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
