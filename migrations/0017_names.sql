-- Names at their longest, and times before 1970.

-- Time in ids begins with 1970: what is earlier comes before every id.
create or replace function carillon.first_id(at timestamptz) returns uuid
language sql immutable strict parallel safe as $$
  select (lpad(to_hex(greatest(0, floor(extract(epoch from at) * 1000))::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- A token may be longer than an index takes (2,704 bytes): the index holds a digest. It is of UTF-8 whatever the database's
-- encoding, so that it is immutable, which convert_to() by itself is not called.
create function carillon.digest(value text) returns bytea
language sql immutable strict parallel safe as $$ select sha256(convert_to(value, 'UTF8')) $$;

alter table carillon.devices drop constraint devices_pkey;
create unique index devices_by_token on carillon.devices (tenant, carillon.digest(token));
