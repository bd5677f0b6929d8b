-- A reader acknowledges an item of which nobody knew whether it had arrived, and in the same instant somebody sends its notification
-- again: one of the two has it. Both used to read `ambiguous` and write what follows, and it was delivered and queued.

-- What was sent cannot be sent again, so it needs no lock. What is ambiguous is moved by whoever holds its row, as carillon.retry()
-- does; one that somebody holds stays for the next call.
create or replace function carillon.deliver_acked(ids uuid[], most integer, out moved integer, out waiting integer)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  held uuid[] := '{}';
  done record;
begin
  ids := coalesce(ids, array(
    select i.notification_id from carillon.inbox_items i
    where i.acked_at is not null and i.delivered_at is null and i.acked_at > carillon.now() - interval '1 day'
    order by i.acked_at limit most));
  moved := 0;
  loop
    with acked as materialized (
      select i.ctid as place, i.tenant, i.notification_id, i.created_at, i.acked_at from carillon.inbox_items i
      where i.notification_id = any (ids) and i.acked_at is not null and i.delivered_at is null
      order by i.notification_id for update skip locked
    ), standing as materialized (
      select a.*, (select r.status from carillon.records r where r.tenant = a.tenant and r.id = a.notification_id) as status
      from acked a
    ), delivered as (
      update carillon.inbox_items i set delivered_at = s.acked_at from standing s
      where i.ctid = s.place and i.delivered_at is null
        and (s.status = 'sent' or s.status = 'ambiguous' and s.notification_id = any (held))
      returning s.*
    )
    select count(*) as n, (select count(*) from acked) as asked,
      array(select notification_id from standing where status = 'ambiguous' order by notification_id) as doubtful,
      array(select tenant from standing where status = 'ambiguous' order by notification_id) as tenants_of,
      array_agg(notification_id) as ids, array_agg(tenant) as tenants,
      array_agg(status) as standing, array_agg((extract(epoch from acked_at - created_at) * 1000)::real) as latencies,
      array_agg(json_build_object('ackedAt', acked_at)) as details
    into done from delivered;
    perform carillon.record_delivered(done.ids, done.tenants, done.standing, 'inbox', done.latencies, done.details);
    moved := moved + done.n;
    waiting := done.asked - done.n;
    exit when done.doubtful = '{}' or held <> '{}';
    -- The next round reads anew, with what was committed before the rows were had.
    held := array(
      select n.id from unnest(done.tenants_of, done.doubtful) as d(tenant, id)
      cross join lateral (
        select x.id from carillon.notifications x where x.tenant = d.tenant and x.id = d.id for update skip locked
      ) n);
    exit when held = '{}';
  end loop;
end
$$;
