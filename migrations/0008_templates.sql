-- Templates. A version, once stored, is never changed; a template says which of its versions is sent.
--
-- A deleted template keeps its row, without an active version, so that its numbers are not given out again: a
-- notification that still waits names the version it was written for, and must not get another text.
create table carillon.templates (
  tenant         integer not null references carillon.tenants,
  id             text not null,
  channel        text not null,
  latest_version integer not null,
  active_version integer,
  primary key (tenant, id),
  check (active_version <= latest_version)
);

create table carillon.template_versions (
  tenant     integer not null,
  id         text not null,
  version    integer not null,
  channel    text not null,
  name       text not null,
  content    json not null,
  engine     text not null check (engine in ('liquid')),
  strict     boolean not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant, id, version),
  foreign key (tenant, id) references carillon.templates
);
