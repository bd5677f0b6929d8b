-- Plans: dead letters that are to be sent again, or to leave the list, counted and looked over before anything is done with them.

-- Every state but the last three is open. An open plan has its next turn at `turn_at`: to go on counting or applying, to look how its canaries
-- fared, or to lapse because nobody came back to it.
create table carillon.plans (
  tenant      integer not null references carillon.tenants,
  id          uuid not null,
  -- The last two are of those that are sent again without being looked over: notifications, and callbacks.
  kind        text not null check (kind in ('requeue', 'purge', 'retry', 'callback-retry')),
  state       text not null default 'counting'
    check (state in ('counting', 'ready', 'applying', 'waiting', 'done', 'aborted', 'lapsed')),
  -- Which: by a filter, or by ids, which go once they are counted.
  filter      jsonb,
  ids         uuid[],
  made_by     text not null,
  made_at     timestamptz not null default carillon.now(),
  -- What a message costs by each provider, and on each channel, as known when the plan was made.
  prices      jsonb not null default '{}',
  -- Counting begins with the newest and has come down to here; `looked` counts what it came upon, matching or not.
  reached     uuid,
  looked      bigint not null default 0,
  counted     bigint not null default 0,
  -- There is more than a plan may hold.
  is_cut      boolean not null default false,
  cost        double precision not null default 0,
  unpriced    bigint not null default 0,
  excluded    jsonb not null default '{}',
  -- How many a second; how many first, and whether it goes on by itself when those went well.
  rate        integer not null,
  canary      integer,
  goes_on     boolean not null default false,
  canary_ids  uuid[] not null default '{}',
  -- Applying has seen to all before this place of this page.
  page        integer not null default 0,
  place       integer not null default 0,
  done        bigint not null default 0,
  skipped     jsonb not null default '{}',
  begun_at    timestamptz,
  finished_at timestamptz,
  turn_at     timestamptz not null default carillon.now(),
  failures    integer not null default 0,
  error       text,
  primary key (tenant, id),
  check ((finished_at is not null) = (state in ('done', 'aborted', 'lapsed')))
);
create index plans_by_turn on carillon.plans (turn_at) where finished_at is null;
create index plans_of_tenant on carillon.plans (tenant, turn_at) where finished_at is null;
create index plans_finished on carillon.plans (finished_at) where finished_at is not null;

-- What was counted: a thousand a row, with the event that made each a dead letter. What has another last event when its turn comes has changed since,
-- and is passed over. A row goes when it was seen to, or with the plan.
create table carillon.plan_pages (
  tenant integer not null,
  plan   uuid not null,
  page   integer not null,
  ids    uuid[] not null,
  seqs   bigint[] not null,
  primary key (tenant, plan, page),
  foreign key (tenant, plan) references carillon.plans on delete cascade
);
alter table carillon.plan_pages alter ids set storage external, alter seqs set storage external;

-- An error without what tells one message from another: addresses, ids, numbers. Codes of HTTP and SMTP are what matters, and stay.
create function carillon.cause_of(error text) returns text
language sql immutable strict parallel safe as $$
  select left(regexp_replace(regexp_replace(left(error, 500), '\S+@\S+', '#', 'g'),
    '(?<!\d\.)\m(?![1-5]\d\d\M(?!\s?(ms|s|sec|seconds|bytes|kB)\M))(?!\d\.\d\.\d\M)(?=[\w:.-]*\d)[\w:.-]*[\w]', '#', 'g'), 200)
$$;

-- As before, and a failure may be taken off the list of dead letters. It stays one.
create or replace function carillon.can_happen(type text, was carillon.status, becomes carillon.status) returns boolean
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
    when 'purged' then was = 'failed' and becomes = 'failed'
    when 'reminder.due' then was = 'queued' and becomes = 'queued'
    else false
  end;
end
$$;

-- Takes failed notifications off the list of dead letters; answers with those that were on it. The lock is that of carillon.retry().
create function carillon.purge(of_tenant integer, ids uuid[], of_plan uuid) returns setof uuid
language plpgsql as $$
begin
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = any (ids) order by n.id for update;
  return query
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, detail)
    select n.id, of_tenant, 'purged', 'failed', 'failed', json_build_object('plan', of_plan)
    from carillon.notifications n cross join lateral (
      select e.type, e.to_status from carillon.events e where e.notification_id = n.id order by e.seq desc, e.at desc limit 1
    ) e
    where n.tenant = of_tenant and n.id = any (ids) and e.to_status = 'failed' and e.type <> 'purged' and not carillon.is_restored(n.id)
    returning notification_id;
end
$$;

-- As before. That a dead letter left the list changes nothing that followers know of: it failed, which they were told. A statement that knows how many of
-- which kind it writes says so in `carillon.counts`, which is for that statement alone.
create or replace function carillon.tell_events() returns trigger language plpgsql as $$
declare
  counts constant text := current_setting('carillon.counts', true);
begin
  perform carillon.tell(array_agg(w.tenant), array_agg(carillon.fact_type(w.type, w.to_status)), array_agg(w.notification_id), array_agg(w.seq),
    nullif(counts, '')::json)
  from written w where w.tenant > 0 and w.type <> 'purged';
  if counts <> '' then perform set_config('carillon.counts', '', true); end if;
  return null;
end
$$;
