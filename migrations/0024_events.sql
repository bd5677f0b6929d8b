-- Events: the database knows what can happen, and in which order it did.

-- The order of events, by no clock. Whoever writes an event holds what it is about (its place in the queue, its claim or its row) or has
-- read the event before it, and draws a number then: of two events about one notification the later has the greater. What is older
-- than this column is 1 and goes by its time among itself: no row is rewritten. `accepted`, which is not stored, is 0.
create sequence carillon.event_seq as bigint start with 2 minvalue 0;
alter table carillon.events add column seq bigint not null default 1;
alter table carillon.events alter column seq set default nextval('carillon.event_seq'),
  alter column at set default carillon.now();

alter table carillon.receipts alter column at set default carillon.now();
alter table carillon.reports alter column received_at set default carillon.now();

-- What leads from where to where, as in src/domain/event.ts. Nearly all are attempts: only those are looked at in the CHECK itself, which
-- PostgreSQL reads anew for every statement. With the others beside them a settlement of one took 90 µs more; so it is 10.
-- Not validated: rows are never changed, so what is old stays as it was written, and a large table need not be read while everybody
-- waits.
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
alter table carillon.events add constraint events_can_happen check (case type
  when 'attempt' then from_status = 'processing' and to_status = any ('{sent,pending,failed,expired,suppressed,ambiguous}')
  else carillon.can_happen(type, from_status, to_status)
end) not valid;

create or replace view carillon.records as
  select n.*, coalesce(
    (select q.status from carillon.queue_standing(n.seq) q),
    nullif((select e.to_status from carillon.events e where e.notification_id = n.id order by e.seq desc, e.at desc limit 1), 'pending'),
    'queued') as status
  from carillon.notifications n;

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

create or replace function carillon.apply_report(p carillon.reports, of_tenant integer, of_id uuid) returns void
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

create or replace function carillon.deliver_acked(ids uuid[], most integer, out moved integer, out waiting integer)
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
