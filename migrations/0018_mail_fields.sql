-- Every fault of a request to send; the same rules as src/domain/validate.ts. New: the names of a mail's own headers.
create or replace function carillon.faults(request jsonb) returns jsonb
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
    select '/content/headers/' || carillon.pointer(name),
      case when name !~ (contract -> 'headers' ->> 'name') then 'must be the name of a header' else 'is set by Carillon itself' end
    from jsonb_object_keys(case jsonb_typeof(request -> 'content' -> 'headers') when 'object'
      then request -> 'content' -> 'headers' else '{}' end) as name
    where name !~ (contract -> 'headers' ->> 'name') or contract -> 'headers' -> 'reserved' ? lower(name)
    union all
    select '/recipient/timezone', 'must be a time zone like Europe/Paris'
    where jsonb_typeof(request -> 'recipient' -> 'timezone') = 'string'
      and not carillon.is_time_zone(request -> 'recipient' ->> 'timezone')
  ) f;
  return found;
end
$$;
