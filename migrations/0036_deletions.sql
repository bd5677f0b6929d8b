-- People who asked to be forgotten: what identifies them is removed or blanked, batch by batch, by whoever comes upon the job.

-- The pseudonym stays when it is done: whoever restores an archive from before must not bring them back.
create table carillon.deletions (
  tenant        integer not null references carillon.tenants,
  pseudonym     text not null,
  -- Until it is done.
  user_id       text,
  -- What came later is another matter.
  requested_at  timestamptz not null default carillon.now(),
  -- Transactions that were open then may still bring something from before.
  requested_xid xid8 not null default pg_current_xact_id(),
  phase         text not null default 'broadcasts'
    check (phase in ('broadcasts', 'schedules', 'reminders', 'notifications', 'inbox', 'devices', 'callbacks', 'done')),
  -- How far the phase has come, and whether it had to pass over something that a worker had in hand.
  reached       text not null default '',
  is_clean      boolean not null default true,
  -- Made since by a schedule or a reminder that is gone now.
  made_since    uuid[] not null default '{}',
  blanked       bigint not null default 0,
  turn_at       timestamptz not null default carillon.now(),
  failures      integer not null default 0,
  finished_at   timestamptz,
  primary key (tenant, pseudonym),
  check ((user_id is null) = (phase = 'done') and (finished_at is not null) = (phase = 'done'))
);
create index deletions_by_turn on carillon.deletions (turn_at) where finished_at is null;
create index deletions_of_tenant on carillon.deletions (tenant, turn_at) where finished_at is null;
create index deletions_of_user on carillon.deletions (tenant, user_id) where finished_at is null;

-- Of a week that is being archived.
create function carillon.pass_over_deletion() returns trigger language plpgsql as $$
begin
  perform carillon.pass_over(w.week, new.tenant, new.user_id) from carillon.archive_weeks w where w.state in ('begun', 'writing');
  return null;
end
$$;
create trigger deletion_passed_over after insert or update of requested_at on carillon.deletions
  for each row when (new.finished_at is null) execute function carillon.pass_over_deletion();

-- Something from the archive is about somebody whose deletion was asked for since. A callback is as old as the notification that it tells of.
create function carillon.is_of_forgotten(of_tenant integer, of_user text, at timestamptz, request json) returns boolean
language plpgsql as $$
declare
  whose constant integer := abs(of_tenant);
begin
  if not exists (select from carillon.deletions d where d.tenant = whose) then return false; end if;
  if of_tenant < 0 then
    of_user := request #>> '{callback,data,userId}';
    at := carillon.time_of((request #>> '{callback,data,notificationId}')::uuid);
  end if;
  return exists (select from carillon.deletions d
    where d.tenant = whose and d.pseudonym = carillon.pseudonym(whose, of_user) and d.requested_at >= at);
end
$$;

-- Addresses of people who were forgotten go on being protected, under their pseudonyms; these tell whether a tenant has any.
create index suppressions_veiled on carillon.suppressions (tenant) where address ~ '^~[0-9a-f]{32}$';

-- What is left of a notification says that there was one, over which channel and for when. The ledger counts it as before; nobody sends it again.
create function carillon.blank(of_tenant integer, ids uuid[]) returns void
language plpgsql set enable_seqscan = off as $$
begin
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = any (ids) order by n.id for update;
  delete from carillon.idempotency i using carillon.notifications n
  where n.tenant = of_tenant and n.id = any (ids) and i.tenant = of_tenant and i.key = n.request ->> 'idempotencyKey' and i.id = n.id;
  -- Written by one statement with the attempt, hence at the same instant: that has an index. A report that comes later finds nobody.
  delete from carillon.receipts r using carillon.events e
  where e.notification_id = any (ids) and e.type = 'attempt' and r.at = e.at and r.notification_id = e.notification_id;
  delete from carillon.dev_messages d where d.tenant = of_tenant and d.notification_id = any (ids);
  if to_regclass('carillon.callback_markers') is not null then
    delete from carillon.callback_markers m where m.id = any (ids);
  end if;
  update carillon.events e set error = null, detail = null
  where e.notification_id = any (ids) and (e.error is not null or e.detail is not null);
  update carillon.notifications n set user_id = null, request = json_strip_nulls(json_build_object('channel', n.channel,
    'scheduledFor', n.request -> 'scheduledFor', 'recipient', json_build_object(), 'content', json_build_object(), 'forgotten', true))
  where n.tenant = of_tenant and n.id = any (ids);
end
$$;

-- A callback tells of a notification: of one that is blank it tells no more than that, and what the receiver answered is gone. What went to the URL
-- that the request named is not sent again: the URL is gone, too.
create function carillon.blank_callbacks(of_tenant integer, ids uuid[]) returns void
language plpgsql set enable_seqscan = off as $$
begin
  update carillon.events e set error = null, detail = null
  where e.notification_id = any (ids) and (e.error is not null or e.detail is not null);
  update carillon.notifications x set request = (jsonb_set(x.request::jsonb #- '{callback,url}', '{callback,data}', '{"forgotten": true}' || (
      select coalesce(jsonb_object_agg(d.key, d.value), '{}') from json_each(x.request #> '{callback,data}') d
      where d.key in ('notificationId', 'channel', 'priority', 'acceptedAt', 'status', 'attempt', 'provider', 'outcome')))
    || case when x.request #> '{callback,url}' is null then '{}' else '{"forgotten": true}'::jsonb end)::json
  where x.tenant = -of_tenant and x.id = any (ids);
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
        and r.request ->> 'forgotten' is null and not carillon.is_restored(r.id)
    ), offered as (
      insert into carillon.queue_now (priority, seq, tenant, id, expires_at, pool)
      select e.priority, e.seq, of_tenant, e.id, case when e.expires_at > carillon.now() then e.expires_at end, e.pool from ended e
    )
    insert into carillon.events (notification_id, tenant, type, from_status, to_status)
    select e.id, of_tenant, 'retried', e.status, 'queued' from ended e
    returning notification_id;
end
$$;

-- A report, once applied, is kept so that the same is not applied again: whom it named is no longer needed for that.
create function carillon.blank_report() returns trigger language plpgsql as $$
begin
  new.address := null;
  new.suppress := null;
  new.reason := null;
  return new;
end
$$;
create trigger report_applied before update of applied_at on carillon.reports
  for each row when (new.applied_at is not null and old.applied_at is null) execute function carillon.blank_report();
