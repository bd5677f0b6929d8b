-- The one clock. Schedules, expiry, reminders, retries and the record go by it; leases, locks and limits go by the true
-- time, statement_timestamp(), whatever this says. Both stand still while a statement runs, so that an index can be used.
-- PostgreSQL puts the body in the place of the call: it costs nothing.
create function carillon.now() returns timestamptz
language sql stable parallel safe as $$ select statement_timestamp() $$;
