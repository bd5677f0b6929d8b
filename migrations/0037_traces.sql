-- Requests may say which trace they are part of. Whoever sends one again does so from another span, and means the same notification.

create or replace function carillon.fingerprint(request json) returns bytea
language sql immutable strict parallel safe as $$
  select sha256(convert_to((request::jsonb - array['idempotencyKey', 'traceparent', 'tracestate', 'trace'])::text, 'UTF8'))
$$;
