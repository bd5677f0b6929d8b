-- Sending from SQL: the rules of the contract, and the door.

-- Every fault of a value against a schema: the same walk as src/domain/schema.ts, in the same words.
create function carillon.faults_of(schema jsonb, given jsonb, path text) returns table (fault_path text, message text)
language plpgsql stable as $$
declare
  kind text := jsonb_typeof(given);
  wanted text := schema ->> 'type';
  expected jsonb := coalesce(schema -> 'enum', case when schema ? 'const' then jsonb_build_array(schema -> 'const') end);
  words text;
  size integer;
  name text;
  item jsonb;
  rest jsonb := coalesce(schema -> 'additionalProperties', 'true');
begin
  if expected is not null then
    if not expected @> jsonb_build_array(given) then
      select string_agg(w, ', ' order by n) into words from jsonb_array_elements_text(expected) with ordinality as x(w, n);
      return query select path, 'must be ' || case when jsonb_array_length(expected) > 1 then 'one of ' else '' end || words;
    end if;
    return;
  end if;

  if wanted is not null and not (kind = wanted or kind = 'number' and wanted = 'integer' and given::numeric % 1 = 0) then
    return query select path, 'must be ' || case wanted when 'string' then 'a string' when 'integer' then 'a whole number'
      when 'number' then 'a number' when 'boolean' then 'true or false' when 'object' then 'an object' else 'a list' end;
    return;
  end if;

  if kind = 'string' then
    words := given #>> '{}';
    size := char_length(words);
    if size < (schema ->> 'minLength')::integer then
      return query select path, format('must have at least %s character%s', schema ->> 'minLength',
        case when schema ->> 'minLength' = '1' then '' else 's' end);
    elsif size > (schema ->> 'maxLength')::integer then
      return query select path, format('must have at most %s characters', schema ->> 'maxLength');
    elsif words !~ (schema ->> 'pattern') then
      return query select path, 'must be ' || coalesce(schema ->> 'x-expects', 'like ' || (schema ->> 'pattern'));
    elsif (case when schema ->> 'format' = 'date-time' then carillon.instant(words) is null end) then
      return query select path, 'must be a day that exists';
    end if;
  elsif kind = 'number' then
    if given::numeric < (schema ->> 'minimum')::numeric then
      return query select path, 'must be at least ' || (schema ->> 'minimum');
    end if;
    if given::numeric > (schema ->> 'maximum')::numeric then
      return query select path, 'must be at most ' || (schema ->> 'maximum');
    end if;
  elsif kind = 'array' then
    size := jsonb_array_length(given);
    if size < (schema ->> 'minItems')::integer then
      return query select path, format('must have at least %s of them', schema ->> 'minItems');
    end if;
    if size > (schema ->> 'maxItems')::integer then
      return query select path, format('must have at most %s of them', schema ->> 'maxItems');
    elsif schema ? 'items' then
      return query select f.* from jsonb_array_elements(given) with ordinality as x(item, n),
        carillon.faults_of(schema -> 'items', x.item, path || '/' || (n - 1)) f;
    end if;
  elsif kind = 'object' then
    return query select path || '/' || carillon.pointer(r), 'is required'
      from jsonb_array_elements_text(coalesce(schema -> 'required', '[]')) r where not given ? r;
    select count(*) into size from jsonb_object_keys(given);
    if size > (schema ->> 'maxProperties')::integer then
      return query select path, format('must have at most %s fields', schema ->> 'maxProperties');
      return;
    end if;
    for name, item in select * from jsonb_each(given) loop
      if schema -> 'properties' ? name then
        return query select * from carillon.faults_of(schema -> 'properties' -> name, item, path || '/' || carillon.pointer(name));
      elsif rest = 'false' then
        return query select path || '/' || carillon.pointer(name), 'is not a known field';
      elsif jsonb_typeof(rest) = 'object' then
        return query select * from carillon.faults_of(rest, item, path || '/' || carillon.pointer(name));
      end if;
    end loop;
  end if;
end
$$;

create function carillon.pointer(name text) returns text
language sql immutable strict parallel safe as $$ select replace(replace(name, '~', '~0'), '/', '~1') $$;

-- The instant that a text means, or null if there is no such day.
create function carillon.instant(written text) returns timestamptz
language plpgsql stable as $$
begin
  return written::timestamptz;
exception when data_exception then
  return null;
end
$$;

create function carillon.is_time_zone(name text) returns boolean
language plpgsql stable as $$
begin
  return timezone(name, now()) is not null;
exception when invalid_parameter_value then
  return false;
end
$$;

-- What no JSON reader or JavaScript process should be handed, wherever it stands in the request.
create function carillon.unstorable(request jsonb) returns table (fault_path text, message text)
language sql stable as $$
  with recursive inside(path, value, depth) as (
    select '', request, 0
    union all
    select parent.path || '/' || child.name, child.value, parent.depth + 1
    from inside parent, lateral (
      select key as name, value from jsonb_each(case jsonb_typeof(parent.value) when 'object' then parent.value else '{}' end)
      union all
      select (n - 1)::text, x.value from jsonb_array_elements(case jsonb_typeof(parent.value) when 'array' then parent.value
        else '[]' end) with ordinality as x(value, n)
    ) child
    where parent.depth < 32
  )
  select path, 'must not be nested deeper than 32 levels' from inside
  where depth = 32 and jsonb_typeof(value) in ('object', 'array')
  union all
  select path, 'is not a known field' from inside where path like '%/\_\_proto\_\_'
  union all
  select path, 'must be a finite number' from inside
  where jsonb_typeof(value) = 'number' and abs(value::numeric) > 1.7976931348623157e308
$$;

-- Every fault of a request to send; the same rules as src/domain/validate.ts.
create function carillon.faults(request jsonb) returns jsonb
language plpgsql stable as $$
declare
  contract constant jsonb := carillon.contract();
  shape constant text := contract -> 'request' -> 'properties' -> 'expiresAt' ->> 'pattern';
  channel constant text := request ->> 'channel';
  due_at timestamptz;
  expires_at timestamptz;
  found jsonb;
begin
  select jsonb_agg(jsonb_build_object('path', f.fault_path, 'message', f.message)) into found
  from carillon.unstorable(request) f;
  if octet_length(request::text) > 262144 then
    found := jsonb_build_array(jsonb_build_object('path', '', 'message', 'must not be larger than 262144 bytes'));
  end if;
  if found is not null then return found; end if;

  if request ->> 'scheduledFor' ~ shape then due_at := carillon.instant(request ->> 'scheduledFor'); end if;
  if request ->> 'expiresAt' ~ shape then expires_at := carillon.instant(request ->> 'expiresAt'); end if;

  select coalesce(jsonb_agg(jsonb_build_object('path', f.path, 'message', f.message)), '[]') into found
  from (
    select fault_path as path, message from carillon.faults_of(contract -> 'request', request, '')
    union all
    -- A part of the wrong type, or a content that is missing, has a fault already.
    select format('/%s/%s', part, carillon.pointer(names ->> 0)), format('is required for %s', channel)
      || case when jsonb_array_length(names) > 1 then ', or instead ' || (
        select string_agg(name, ' or ' order by n) from jsonb_array_elements_text(names) with ordinality as x(name, n)
        where n > 1) else '' end
    from unnest(array['recipient', 'content']) as part,
      jsonb_array_elements(coalesce(contract -> 'needs' -> channel -> part, '[]')) as names,
      coalesce(request -> part, case part when 'recipient' then '{}'::jsonb end) as given
    where jsonb_typeof(given) = 'object'
      and not given ?| array(select jsonb_array_elements_text(names))
    union all
    select '/expiresAt', case when expires_at <= now() then 'must be in the future' else 'must be after scheduledFor' end
    where expires_at <= now() or expires_at <= due_at
    union all
    select '/content/templateVersion', 'needs templateId'
    where request -> 'content' ? 'templateVersion' and not request -> 'content' ? 'templateId'
    union all
    select '/recipient/timezone', 'must be a time zone like Europe/Paris'
    where jsonb_typeof(request -> 'recipient' -> 'timezone') = 'string'
      and not carillon.is_time_zone(request -> 'recipient' ->> 'timezone')
  ) f;
  return found;
end
$$;

-- Sends from SQL, in the caller's own transaction: rolled back means never sent. Returns the id.
-- Runs with the rights of its owner, so that an application's role needs no more than
-- `grant usage on schema carillon` and `grant execute on function carillon.send`.
create function carillon.send(request jsonb, tenant text default 'default') returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  found constant jsonb := carillon.faults(request);
  tenant_id constant integer := (select t.id from carillon.tenants t where t.name = send.tenant);
  id constant uuid := carillon.new_id();
  replays json;
begin
  if found <> '[]' then
    raise exception 'VALIDATION_FAILED: % %', found -> 0 ->> 'path', found -> 0 ->> 'message'
      using errcode = 'invalid_parameter_value', detail = found::text;
  end if;
  if tenant_id is null then
    raise exception 'NOT_FOUND: there is no tenant %', tenant using errcode = 'invalid_parameter_value';
  end if;
  select a.replays into replays from carillon.accept(json_build_array(json_build_object(
    'i', id, 't', tenant_id, 'c', request ->> 'channel',
    'p', array_position(array['urgent', 'high', 'normal', 'low'], coalesce(request ->> 'priority', 'normal')) - 1,
    'u', request -> 'recipient' ->> 'userId', 'd', request ->> 'scheduledFor', 'e', request ->> 'expiresAt',
    'k', request ->> 'idempotencyKey', 'r', request)), request ? 'idempotencyKey') a;
  if replays is null then return id; end if;
  if not (replays -> 0 ->> 'same')::boolean then
    raise exception 'IDEMPOTENCY_MISMATCH: the idempotency key % was used with another body', request ->> 'idempotencyKey'
      using errcode = 'unique_violation';
  end if;
  return (replays -> 0 ->> 'id')::uuid;
end
$$;
revoke execute on function carillon.send(jsonb, text) from public;
