-- Brokers: where requests come from besides HTTP (sources), and where facts go besides callbacks (sinks). Both are named in the configuration;
-- here is what changes while they run.

-- A row from the first time that somebody runs it. What it carried and what it refused is counted in the transaction that keeps how far it has come.
create table carillon.connectors (
  kind      text not null check (kind in ('source', 'sink')),
  name      text not null,
  type      text not null,
  carried   bigint not null default 0,
  refused   bigint not null default 0,
  -- The last time that something was carried.
  moved_at  timestamptz,
  -- Of a source: when a process last said that it runs it. Who has a sink, its lease says.
  seen_at   timestamptz,
  -- Why it does not go on, since when; null once it does.
  error     text,
  failed_at timestamptz,
  paused_at timestamptz,
  paused_by text,
  reason    text,
  primary key (kind, name)
);

-- The next message of each partition that is to be accepted. It moves in the transaction that accepts those before it. `ends`: where the partition
-- ended then, where that was known.
create table carillon.source_offsets (
  source    text not null,
  topic     text not null,
  partition integer not null,
  next      bigint not null,
  ends      bigint,
  moved_at  timestamptz not null default carillon.now(),
  primary key (source, topic, partition)
);

-- What was refused for good: a message that is no request, a fact that a sink will not have. The message itself stays where it came from: `place` says
-- where that is. `is_untold`: a topic of refusals is to have it, and does not yet.
create table carillon.refusals (
  id      bigint generated always as identity primary key,
  kind    text not null check (kind in ('source', 'sink')),
  name    text not null,
  -- Whose it is, where that is known.
  tenant  integer,
  place   text not null,
  code    text not null,
  faults  json not null,
  at      timestamptz not null default carillon.now(),
  is_untold boolean not null default false
);
create index refusals_by_age on carillon.refusals (at);
create index refusals_of_connector on carillon.refusals (kind, name, id);
create index refusals_of_tenant on carillon.refusals (tenant, id);
create index refusals_untold on carillon.refusals (kind, name, id) where is_untold;
