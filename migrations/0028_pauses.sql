-- What each worker takes, so that what nobody takes can be told; and what waits for a paused provider, so that it comes back at once.

-- Null for replicas that do not say: they take everything.
alter table carillon.workers add takes json;

-- Accounts with providers, with commas between them, that are all paused: it is brought back as soon as one of them is not.
alter table carillon.later add waits_for text;
create index later_waiting_for on carillon.later (waits_for, seq) where waits_for is not null;

-- What waits for a paused provider has no time of its own: whoever changes its lane or expiry puts it back where it came from.
create or replace function carillon.queue_hold(of_tenant integer, of_pool smallint, of_seq bigint,
  out waits_as carillon.status, out due_at timestamptz)
language plpgsql as $$
begin
  select carillon.waits_as(l.due_at), case when l.waits_for is null then l.due_at end into waits_as, due_at
  from carillon.later l where l.seq = of_seq for update;
  if found then return; end if;
  select 'queued' into waits_as from carillon.ready r where r.priority in (0, 1, 2, 3) and r.tenant = of_tenant
    and r.pool in (0, of_pool) and r.seq = of_seq for update;
end
$$;
