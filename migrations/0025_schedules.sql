-- What fires again and again is called a schedule, here as at /v1/schedules. Its time, like that of reminders and of what
-- they leave behind, goes by carillon.now().

alter table carillon.recurrences rename to schedules;
alter index carillon.recurrences_by_turn rename to schedules_by_turn;
alter index carillon.recurrences_by_tenant rename to schedules_by_tenant;
do $$
declare
  its record;
begin
  for its in select conname as name from pg_constraint where conrelid = 'carillon.schedules'::regclass and conname ~ '^recurrences_' loop
    execute format('alter table carillon.schedules rename constraint %I to %I', its.name,
      regexp_replace(its.name, '^recurrences_', 'schedules_'));
  end loop;
end
$$;

-- Replicas of 0.2.0 that still run while others have been upgraded read, lock and write it under its old name.
create view carillon.recurrences as
  select tenant, key, cron, every, timezone, from_at, until_at, catch_up, notice, next_at, paused_at, created_at, updated_at,
    put_off_until, failures, error
  from carillon.schedules;

alter table carillon.schedules alter created_at set default carillon.now(), alter updated_at set default carillon.now();
alter table carillon.runs alter at set default carillon.now();
alter table carillon.reminders alter created_at set default carillon.now(), alter updated_at set default carillon.now();
alter table carillon.reminder_scopes alter updated_at set default carillon.now();
alter table carillon.replans alter started_at set default carillon.now();
alter table carillon.broadcasts alter turn_at set default carillon.now();
