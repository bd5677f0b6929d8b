-- People at the dashboard: somebody showed a key once, and a cookie stands for it until it expires, is ended, or the key is no more.

create table carillon.sessions (
  id         text primary key check (length(id) <= 64),
  -- Of the whole token: it is shown once, like a key.
  hash       bytea not null,
  -- Null for the key of the environment, of which the hash is kept instead: with another key there its sessions are over.
  key        text references carillon.keys on delete cascade,
  fixed_hash bytea,
  begun_at   timestamptz not null default carillon.now(),
  expires_at timestamptz not null,
  check ((key is null) = (fixed_hash is not null))
);
create index sessions_of_key on carillon.sessions (key, begun_at);
create index sessions_by_expiry on carillon.sessions (expires_at);

-- Through which session the key did it.
alter table carillon.audit add column session text check (length(session) <= 64);

create or replace function carillon.write_audit(line json, out at timestamptz, out seq bigint)
language plpgsql as $$
declare
  whose integer := coalesce((line ->> 'tenant')::integer, (line ->> 'byTenant')::integer, 1);
  done_by integer := (line ->> 'byTenant')::integer;
begin
  insert into carillon.audit as a
    (tenant, by_tenant, actor_kind, actor, actor_name, session, action, object, before, after, address, request_id)
  values (whose, nullif(done_by, whose), line ->> 'actorKind',
    case when line ->> 'actorKind' = 'user' then carillon.pseudonym(done_by, line ->> 'actor') else line ->> 'actor' end,
    line ->> 'actorName', line ->> 'session', line ->> 'action',
    (line ->> 'objectKind') || coalesce(':' || case when (line ->> 'isPerson')::boolean
      then carillon.pseudonym(whose, line ->> 'objectName') else line ->> 'objectName' end, ''),
    (line ->> 'before')::jsonb,
    case when line ->> 'about' is null then (line ->> 'after')::jsonb
      else coalesce((line ->> 'after')::jsonb, '{}') || jsonb_build_object('user', carillon.pseudonym(whose, line ->> 'about')) end,
    line ->> 'address', line ->> 'requestId')
  returning a.at, a.seq into at, seq;
end
$$;
