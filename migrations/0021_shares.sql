-- However much of something one tenant has, what is done with it at once is bounded.

-- Marks items of one user, at most a thousand, and answers with the notifications of those that changed: after a thousand there may
-- be more. The inbox is locked first, as everywhere, and whoever stores items for many waits for that lock.
create or replace function carillon.mark_items(of_tenant integer, of_user text, verb text, ids uuid[], of_category text, up_to bigint)
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
      update carillon.inbox_items i set acked_at = clock_timestamp()
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
      update carillon.inbox_items i set acked_at = clock_timestamp()
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.acked_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'read' then
    with m as (
      update carillon.inbox_items i set read_at = clock_timestamp(), acked_at = coalesce(i.acked_at, clock_timestamp())
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.read_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'archive' then
    with m as (
      update carillon.inbox_items i set archived_at = clock_timestamp(), acked_at = coalesce(i.acked_at, clock_timestamp())
      where i.tenant = of_tenant and i.user_id = of_user and i.notification_id = any (ids) and i.archived_at is null
      returning i.notification_id
    ) select array_agg(notification_id) into marked from m;
  elsif verb = 'read-all' then
    with m as (
      update carillon.inbox_items i set read_at = clock_timestamp(), acked_at = coalesce(i.acked_at, clock_timestamp())
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
    update carillon.inboxes b set changed_xid = pg_current_xact_id(), changed_at = clock_timestamp()
    where b.tenant = of_tenant and b.user_id = of_user;
  end if;
  return coalesce(marked, '{}');
end
$$;

-- A user may have any number of devices; those that were registered last are found without looking at the others.
create index devices_of_user_active on carillon.devices (tenant, user_id, updated_at) where dead_at is null;
