-- The record and the queue.
--
-- A notification is written once, wide, and changed only when it is rescheduled. What moves is narrow: a row of ready
-- or schedule, a place in a row of claims, found by seq. What happened is a row of events. A notification's status is
-- read from these facts (view records), never stored beside them.

create type carillon.status as enum ('pending', 'queued', 'processing', 'sent', 'delivered', 'failed', 'cancelled',
  'expired', 'suppressed', 'ambiguous');

create table carillon.tenants (
  id         integer generated always as identity primary key,
  name       text not null unique check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  created_at timestamptz not null default now()
);
insert into carillon.tenants (name) values ('default');

create table carillon.keys (
  id           text primary key,
  tenant       integer not null references carillon.tenants,
  name         text not null,
  hash         bytea not null check (length(hash) = 32),
  scopes       text[] not null check (scopes <@ array['send', 'read', 'admin'] and cardinality(scopes) > 0),
  created_at   timestamptz not null default now(),
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

-- Acceptance order, and the key of whatever moves. Eight bytes, ever growing: the indexes of the
-- queue stay narrow and are appended to. One number serves ready, claims and schedule in turn.
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

-- A settled attempt is one row here, and so is everything else that changes a status.
create table carillon.events (
  notification_id uuid not null,
  tenant          integer not null,
  at              timestamptz not null default clock_timestamp(),
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
  detail          json
) partition by range (notification_id);
create index events_of_notification on carillon.events (notification_id);
-- Costs nothing for what goes well.
create index events_failed on carillon.events (tenant, notification_id) where to_status = 'failed';

-- Who holds leases. A process is a new worker each time it starts.
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

-- To be claimed once due, before what is ready in the same lane.
create table carillon.schedule (
  seq        bigint primary key,
  due_at     timestamptz not null,
  priority   smallint not null,
  tenant     integer not null,
  id         uuid not null,
  attempt    smallint not null default 0,
  expires_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index schedule_by_due on carillon.schedule (priority, due_at);
create index schedule_expiring on carillon.schedule (expires_at) where expires_at is not null;

create table carillon.idempotency (
  tenant     integer not null,
  key        text not null,
  id         uuid not null,
  hash       bytea not null,
  expires_at timestamptz not null,
  primary key (tenant, key)
);

-- The smallest UUIDv7 of an instant.
create function carillon.first_id(at timestamptz) returns uuid
language sql immutable strict parallel safe as $$
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

create function carillon.new_id() returns uuid
language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
    from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
$$;

-- A partition a week, of notifications and of their events alike, so that both are dropped together.
-- The default partition catches ids from a clock that is far off.
create table carillon.notifications_default partition of carillon.notifications default;
create table carillon.events_default partition of carillon.events default;

create function carillon.make_partitions(first timestamptz, last timestamptz) returns integer
language plpgsql as $$
declare
  week timestamp := date_trunc('week', first at time zone 'UTC');
  parent text;
  child text;
  made integer := 0;
begin
  while week <= last at time zone 'UTC' loop
    foreach parent in array array['notifications', 'events'] loop
      child := parent || to_char(week, '"_"YYYYMMDD');
      if to_regclass('carillon.' || child) is null then
        execute format('create table carillon.%I partition of carillon.%I for values from (%L) to (%L)', child, parent,
          carillon.first_id(week at time zone 'UTC'), carillon.first_id((week + interval '7 days') at time zone 'UTC'));
        made := made + 1;
      end if;
    end loop;
    week := week + interval '7 days';
  end loop;
  return made;
end
$$;
select carillon.make_partitions(now() - interval '7 days', now() + interval '56 days');

-- Every notification with the status that the facts give it.
create view carillon.records as
  select n.*, case
    when exists (select from carillon.claims c where n.seq between c.first_seq and c.last_seq
      and get_bit(c.done, array_position(c.seqs, n.seq) - 1) = 0) then 'processing'::carillon.status
    when exists (select from carillon.schedule s where s.seq = n.seq) then 'pending'
    else coalesce((select e.to_status from carillon.events e where e.notification_id = n.id order by e.at desc limit 1),
      'queued')
  end as status
  from carillon.notifications n;
