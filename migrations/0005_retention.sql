-- Retention: weeks that are over and done with are dropped whole, notifications and events together. A week in which
-- something still waits keeps what waits; the rest of it is deleted.
create function carillon.retire(before timestamptz) returns integer
language plpgsql as $$
declare
  week record;
  deleted integer;
  retired integer := 0;
begin
  for week in
    select c.relname as name, replace(c.relname, 'notifications', 'events') as events,
      carillon.first_id(at) as first, carillon.first_id(at + interval '7 days') as last
    from pg_inherits i join pg_class c on c.oid = i.inhrelid,
      lateral (select to_date(right(c.relname, 8), 'YYYYMMDD')::timestamp at time zone 'UTC' as at) starts
    where i.inhparent = 'carillon.notifications'::regclass and c.relname ~ '^notifications_[0-9]{8}$'
      and at + interval '7 days' <= before
    order by at
  loop
    if exists (select from carillon.ready where id >= week.first and id < week.last)
      or exists (select from carillon.leased where id >= week.first and id < week.last)
      or exists (select from carillon.schedule where id >= week.first and id < week.last) then
      execute format('delete from carillon.events e where e.notification_id >= %1$L and e.notification_id < %2$L
        and not exists (select from carillon.notifications n where n.tenant = e.tenant and n.id = e.notification_id
          and (exists (select from carillon.ready r where r.priority = n.priority and r.seq = n.seq)
            or exists (select from carillon.leased l where l.seq = n.seq)
            or exists (select from carillon.schedule s where s.seq = n.seq)))', week.first, week.last);
      execute format('delete from carillon.notifications n where n.id >= %1$L and n.id < %2$L
        and not exists (select from carillon.ready r where r.priority = n.priority and r.seq = n.seq)
        and not exists (select from carillon.leased l where l.seq = n.seq)
        and not exists (select from carillon.schedule s where s.seq = n.seq)', week.first, week.last);
      get diagnostics deleted = row_count;
      retired := retired + deleted;
    else
      execute format('drop table carillon.%I, carillon.%I', week.name, week.events);
      retired := retired + 1;
    end if;
  end loop;
  return retired;
end
$$;
