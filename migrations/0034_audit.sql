-- Who did what to what, when and from where.
--
-- A line is written by write_audit() in the transaction that makes the change: neither is there without the other. It is written
-- once; only a change that is made batch by batch brings its line up to date, in the transaction of each batch.

create sequence carillon.audit_lines as bigint;

-- By month, so that what has been kept for long enough is dropped and not deleted.
create table carillon.audit (
  seq          bigint not null default nextval('carillon.audit_lines'),
  at           timestamptz not null default carillon.now(),
  -- Whose it is that was changed. What is everybody's is the default tenant's, which runs the deployment.
  tenant       integer not null,
  -- Whose actor it was, where that is another tenant: both see the line.
  by_tenant    integer check (by_tenant <> tenant),
  actor_kind   text not null check (actor_kind in ('key', 'user', 'provider', 'process', 'command-line')),
  actor        text not null check (length(actor) <= 400),
  actor_name   text check (length(actor_name) <= 400),
  action       text not null check (length(action) <= 64),
  object       text not null check (length(object) <= 800),
  -- The fields that changed, as they were and as they are.
  before       jsonb check (octet_length(before::text) <= 32768),
  after        jsonb check (octet_length(after::text) <= 32768),
  address      text check (length(address) <= 64),
  request_id   text check (length(request_id) <= 64)
) partition by range (at);
create index audit_of_tenant on carillon.audit (tenant, seq);
create index audit_by_tenant on carillon.audit (by_tenant, seq) where by_tenant is not null;
create index audit_line on carillon.audit (seq);

-- What comes before its month has a partition, or after a keeper was long away.
create table carillon.audit_default partition of carillon.audit default;

-- As for the partitions of the record: made by itself and then attached, and given up where somebody is in the way. A month of
-- which the default partition already holds something stays there.
create function carillon.make_audit_months(ahead integer) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  month timestamp := date_trunc('month', carillon.now() at time zone 'UTC');
  child text;
  made integer := 0;
begin
  for n in 0 .. ahead loop
    child := to_char(month, '"audit_"YYYYMM');
    if to_regclass('carillon.' || child) is null and not exists (select from carillon.audit_default
        where at >= month at time zone 'UTC' and at < (month + interval '1 month') at time zone 'UTC') then
      execute format('create table carillon.%I (like carillon.audit including all)', child);
      execute format('alter table carillon.audit attach partition carillon.%I for values from (%L) to (%L)', child,
        month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
      made := made + 1;
    end if;
    month := month + interval '1 month';
  end loop;
  return made;
end
$$;
select carillon.make_audit_months(1);

-- Drops the first month that lies wholly before; of the default partition, rows go. How many it ended the keeping of.
create function carillon.forget_audit(before timestamptz, most integer) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  child text;
  gone integer;
begin
  select c.relname into child from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'carillon.audit'::regclass and c.relname ~ '^audit_[0-9]{6}$'
    and (to_date(right(c.relname, 6), 'YYYYMM')::timestamp + interval '1 month') at time zone 'UTC' <= forget_audit.before
  order by 1 limit 1;
  if child is not null then
    execute format('drop table carillon.%I', child);
    perform carillon.write_audit(json_build_object('actorKind', 'process', 'actor', 'keeper', 'action', 'audit.drop', 'objectKind', 'audit',
      'objectName', right(child, 6)));
    return most;
  end if;
  delete from carillon.audit_default where ctid = any (array(
    select ctid from carillon.audit_default d where d.at <= forget_audit.before limit most for update skip locked));
  get diagnostics gone = row_count;
  if gone > 0 then
    perform carillon.write_audit(json_build_object('actorKind', 'process', 'actor', 'keeper', 'action', 'audit.drop', 'objectKind', 'audit',
      'objectName', 'default', 'after', json_build_object('lines', gone)));
  end if;
  return gone;
end
$$;

-- What a person or an address is called where nothing may be kept that tells who they are: the same name always gives the same, and
-- nobody without the secret can tell which. Made at first use.
create function carillon.pseudonym(of_tenant integer, known_as text) returns text
language plpgsql as $$
declare
  key bytea;
begin
  for n in 1 .. 2 loop
    select secret into key from carillon.secrets where name = 'people';
    exit when found;
    insert into carillon.secrets (name, secret)
    values ('people', decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'))
    on conflict do nothing;
  end loop;
  -- Nested as in HMAC, so that nothing can be appended.
  return '~' || encode(substr(sha256(key || sha256(key || convert_to(of_tenant || ' ' || known_as, 'UTF8'))), 1, 16), 'hex');
end
$$;

-- Writes a line. `person` says that the object is named after somebody; `about` is somebody whom the change names besides.
create function carillon.write_audit(line json, out at timestamptz, out seq bigint)
language plpgsql as $$
declare
  whose integer := coalesce((line ->> 'tenant')::integer, (line ->> 'byTenant')::integer, 1);
  done_by integer := (line ->> 'byTenant')::integer;
begin
  insert into carillon.audit as a (tenant, by_tenant, actor_kind, actor, actor_name, action, object, before, after, address, request_id)
  values (whose, nullif(done_by, whose), line ->> 'actorKind',
    case when line ->> 'actorKind' = 'user' then carillon.pseudonym(done_by, line ->> 'actor') else line ->> 'actor' end,
    line ->> 'actorName', line ->> 'action',
    (line ->> 'objectKind') || coalesce(':' || case when (line ->> 'isPerson')::boolean
      then carillon.pseudonym(whose, line ->> 'objectName') else line ->> 'objectName' end, ''),
    (line ->> 'before')::jsonb,
    case when line ->> 'about' is null then (line ->> 'after')::jsonb
      else coalesce((line ->> 'after')::jsonb, '{}') || jsonb_build_object('user', carillon.pseudonym(whose, line ->> 'about')) end,
    line ->> 'address', line ->> 'requestId')
  returning a.at, a.seq into at, seq;
end
$$;
