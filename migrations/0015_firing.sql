-- Firing one by one: what fails is put off by itself, and every tenant has its turn.

-- A schedule, or a line of a plan, that could not be fired is looked at again at put_off_until; its own time stays what it
-- was. Its turn comes at the later of the two.
alter table carillon.recurrences add column put_off_until timestamptz, add column failures integer not null default 0,
  add column error text;
drop index carillon.recurrences_by_next;
create index recurrences_by_turn on carillon.recurrences (greatest(next_at, put_off_until)) where next_at is not null;
create index recurrences_by_tenant on carillon.recurrences (tenant, greatest(next_at, put_off_until)) where next_at is not null;

alter table carillon.reminder_plan add column put_off_until timestamptz, add column failures integer not null default 0;
drop index carillon.reminder_plan_by_due;
create index reminder_plan_by_turn on carillon.reminder_plan (greatest(due_at, put_off_until)) where outcome is null;
create index reminder_plan_by_tenant on carillon.reminder_plan (tenant, greatest(due_at, put_off_until)) where outcome is null;

-- Re-plans take turns as well: the one that was worked at longest ago is next.
alter table carillon.replans add column put_off_until timestamptz;
drop index carillon.replans_to_do;
create index replans_to_do on carillon.replans (greatest(started_at, put_off_until)) where finished_at is null;

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
alter table carillon.reminders add column bytes bigint generated always as (carillon.bytes_of(notice)) stored;

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
  turn_at    timestamptz not null default clock_timestamp(),
  failures   integer not null default 0,
  foreign key (tenant, run_key, run_tick) references carillon.runs on delete cascade,
  check ((line_id is null) <> (run_key is null)),
  check ((run_key is null) = (run_tick is null))
);
create index broadcasts_by_turn on carillon.broadcasts (turn_at);
create index broadcasts_of_line on carillon.broadcasts (line_id) where line_id is not null;
create index broadcasts_of_run on carillon.broadcasts (tenant, run_key, run_tick) where run_key is not null;

alter table carillon.reminder_plan drop constraint reminder_plan_outcome_check,
  add check (outcome in ('sending', 'sent', 'missed', 'failed'));
alter table carillon.runs drop constraint runs_outcome_check,
  add check (outcome in ('sending', 'sent', 'skipped', 'failed'));
