-- Locks on deliveries, for installations that ask for them (CARILLON_LOCKS=postgres).

create sequence carillon.lock_tokens;

-- A released lock keeps its row for a while: the next holder's token is then drawn under the row's lock, and so is
-- greater than the last one's whatever the two were waiting for.
create table carillon.locks (
  key    text primary key,
  holder text not null,
  token  bigint not null,
  until  timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
