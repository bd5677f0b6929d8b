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
    ), back as (
      insert into carillon.ready (priority, seq, tenant, id, expires_at)
      select e.priority, e.seq, of_tenant, e.id, case when e.expires_at > clock_timestamp() then e.expires_at end from ended e
    )
    insert into carillon.events (notification_id, tenant, type, from_status, to_status)
    select e.id, of_tenant, 'retried', e.status, 'queued' from ended e
    returning notification_id;
end
$$;
