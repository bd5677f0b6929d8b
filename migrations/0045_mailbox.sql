-- The mailbox: what the provider `dev` kept instead of sending it, as it would have been on the wire.

alter table carillon.dev_messages
  -- Made by whoever would have sent it: its body, its headers, how many segments it has. Null for what an older release kept.
  add column wire json,
  -- Everybody it would have gone to, in lower case.
  add column recipients text[] not null default '{}',
  -- What a search looks through, in lower case: the beginning of what it says, and to whom.
  add column words text not null default '',
  add column bytes integer not null default 0;
update carillon.dev_messages set bytes = octet_length(message::text);
drop index carillon.dev_messages_of_tenant;
create index dev_messages_of_tenant on carillon.dev_messages (tenant, id) include (bytes);

-- Ids are given out in the order of commits: whoever has seen one will never find a smaller one of the same tenant that is new. Of each tenant the
-- latest stay, so many and so large together; of what is larger than that by itself, the last one.
create function carillon.keep_dev_messages(rows json, most integer, most_bytes bigint) returns void
language plpgsql as $$
declare
  of_tenant integer;
begin
  for of_tenant in select distinct t from json_to_recordset(rows) as x(t integer) order by t loop
    perform pg_advisory_xact_lock(hashtext('carillon.dev_messages'), of_tenant);
  end loop;
  insert into carillon.dev_messages (tenant, notification_id, channel, message, wire, recipients, words, bytes)
  select t, i, c, m, w, array(select json_array_elements_text(r)), q, octet_length(m::text) + octet_length(w::text)
  from rows from (json_to_recordset(rows) as (t integer, i uuid, c text, m json, w json, r json, q text)) with ordinality
    as x(t, i, c, m, w, r, q, n) order by n;
  for of_tenant in select distinct t from json_to_recordset(rows) as x(t integer) loop
    delete from carillon.dev_messages where id = any (array(
      select d.id from (
        select id, row_number() over latest as nth, sum(d.bytes) over latest as total
        from carillon.dev_messages d where d.tenant = of_tenant window latest as (order by id desc)
      ) d where d.nth > most or (d.total > most_bytes and d.nth > 1)));
  end loop;
end
$$;

-- Time travel: puts the clock so far ahead of the true one. PostgreSQL puts the body of now() in the place of its calls: a table to look into would
-- cost every statement that asks for the time, and this costs nothing. Every session goes by the new one from its next statement on.
create function carillon.set_clock(ahead interval) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtext('carillon.clock'));
  execute format('create or replace function carillon.now() returns timestamptz language sql stable parallel safe as %L',
    ' select statement_timestamp() ' || case when ahead <> interval '0' then format('+ interval %L ', ahead) else '' end);
end
$$;

-- Sends that are to fail, in development: the next so many of a tenant that the provider `dev` carries. Those that are used up stay to be looked at.
create table carillon.dev_faults (
  id            bigint generated always as identity primary key,
  tenant        integer not null,
  provider      text,
  channel       text,
  fault         text not null,
  total         integer not null check (total > 0),
  remaining     integer not null check (remaining between 0 and total),
  retry_after_s integer,
  at            timestamptz not null default carillon.now(),
  check (provider is not null or channel is not null)
);
create index dev_faults_of_tenant on carillon.dev_faults (tenant, id);
