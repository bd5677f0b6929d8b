-- Acceptance: the one place where notifications come into being, whichever door they came through.

-- Two requests are the same when their JSON values are; the key itself does not count.
create function carillon.fingerprint(request json) returns bytea
language sql immutable strict parallel safe as $$
  select sha256(convert_to((request::jsonb - 'idempotencyKey')::text, 'UTF8'))
$$;

-- How long an idempotency key is kept. `alter database … set carillon.keep_keys = '7 days'` changes it.
create function carillon.keep_keys() returns interval
language sql stable as $$ select coalesce(nullif(current_setting('carillon.keep_keys', true), ''), '24 hours')::interval $$;

-- Stores many validated requests in one statement. Each row: i id, t tenant, c channel, p priority,
-- u user id, d due at, e expires at, k idempotency key, r request.
--
-- Answers with one row, since nearly always nothing needs saying of the single request: the instant
-- of acceptance, and the few whose idempotency key was already taken, each with the id that holds the
-- key and whether its body is the same.
create function carillon.accept(rows json, has_keys boolean,
  out accepted_at timestamptz, out replays json)
language plpgsql as $$
declare
  taken uuid[] := '{}';
begin
  accepted_at := statement_timestamp();
  if has_keys then
    -- Sorted, so that two batches with the same keys wait for each other instead of deadlocking.
    insert into carillon.idempotency as held (tenant, key, id, hash, expires_at)
    select distinct on (x.t, x.k) x.t, x.k, x.i, carillon.fingerprint(x.r), accepted_at + carillon.keep_keys()
    from rows from (json_to_recordset(rows) as (i uuid, t integer, k text, r json)) with ordinality as x(i, t, k, r, n)
    where x.k is not null
    order by x.t, x.k, x.n
    on conflict (tenant, key) do update set id = excluded.id, hash = excluded.hash, expires_at = excluded.expires_at
      where held.expires_at <= accepted_at;

    -- A statement of its own: its snapshot sees the key that a racing transaction has just committed.
    taken := array(
      select x.i from json_to_recordset(rows) as x(i uuid, t integer, k text)
      join carillon.idempotency held on held.tenant = x.t and held.key = x.k
      where held.id <> x.i);
  end if;

  -- Only the narrow columns travel on to the queue.
  with stored as (
    insert into carillon.notifications as n (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, expires_at, request)
    select t, i, nextval('carillon.acceptance'), c, p, u, accept.accepted_at, d, e, r
    from json_to_recordset(rows) as x(i uuid, t integer, c text, p smallint, u text, d timestamptz, e timestamptz, r json)
    where x.i <> all (taken)
    returning n.tenant, n.id, n.seq, n.priority, n.due_at, n.expires_at
  ), scheduled as (
    insert into carillon.schedule (seq, due_at, priority, tenant, id, expires_at)
    select seq, due_at, priority, tenant, id, expires_at from stored where due_at > accept.accepted_at
  )
  insert into carillon.ready (priority, seq, tenant, id, expires_at)
  select priority, seq, tenant, id, expires_at from stored where due_at > accept.accepted_at is not true;

  if taken <> '{}' then
    select json_agg(json_build_object('i', x.i, 'id', held.id, 'same', held.hash = carillon.fingerprint(x.r),
      'status', r.status, 'acceptedAt', r.accepted_at))
    into replays
    from json_to_recordset(rows) as x(i uuid, t integer, k text, r json)
    join carillon.idempotency held on held.tenant = x.t and held.key = x.k
    left join carillon.records r on r.tenant = held.tenant and r.id = held.id
    where x.i = any (taken);
  end if;
end
$$;
