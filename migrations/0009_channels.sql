-- Channels: what providers said later, whom nothing may be sent to, devices, credentials, and what dev kept.

-- By which receipt a provider will speak of a notification; only of providers that report.
create table carillon.receipts (
  provider        text not null,
  receipt         text not null,
  tenant          integer not null,
  notification_id uuid not null,
  at              timestamptz not null default clock_timestamp(),
  primary key (provider, receipt)
);
create index receipts_by_age on carillon.receipts (at);

-- Reports as they came. One that outran our own commit waits here for its receipt.
create table carillon.reports (
  provider    text not null,
  report_id   text not null,
  receipt     text not null,
  kind        text not null check (kind in ('delivered', 'failed')),
  at          timestamptz not null,
  reason      text,
  code        text,
  suppress    text,
  why         text check (why in ('bounce', 'complaint')),
  received_at timestamptz not null default clock_timestamp(),
  applied_at  timestamptz,
  primary key (provider, report_id)
);
create index reports_waiting on carillon.reports (received_at) where applied_at is null;

-- Nothing more is sent to these.
create table carillon.suppressions (
  tenant  integer not null references carillon.tenants,
  address text not null,
  why     text not null check (why in ('bounce', 'complaint', 'manual')),
  reason  text,
  at      timestamptz not null default clock_timestamp(),
  primary key (tenant, address)
);

-- Applies reports whose receipt is known: sent becomes delivered, or failed after all. A failure counts whichever of the two came
-- first, so that the order in which reports arrive does not matter. Answers with how many it applied.
create function carillon.apply_reports(most integer) returns integer
language plpgsql as $$
declare
  r record;
  standing carillon.status;
  applied integer := 0;
begin
  for r in
    select p.*, x.tenant, x.notification_id from carillon.reports p
    join carillon.receipts x on x.provider = p.provider and x.receipt = p.receipt
    where p.applied_at is null order by p.received_at limit most for update of p skip locked
  loop
    -- Reports of the same notification one after the other.
    perform from carillon.notifications n where n.tenant = r.tenant and n.id = r.notification_id for update;
    select n.status into standing from carillon.records n where n.tenant = r.tenant and n.id = r.notification_id;
    if r.kind = 'delivered' and standing = 'sent' or r.kind = 'failed' and standing in ('sent', 'delivered') then
      insert into carillon.events (notification_id, tenant, type, from_status, to_status, provider, error, detail)
      values (r.notification_id, r.tenant, case r.kind when 'delivered' then 'delivered' else 'bounced' end, standing,
        r.kind::carillon.status, r.provider, r.reason,
        json_strip_nulls(json_build_object('reportedAt', r.at, 'code', r.code, 'receipt', r.receipt)));
    end if;
    if r.suppress is not null then
      insert into carillon.suppressions (tenant, address, why, reason) values (r.tenant, lower(r.suppress), r.why, r.reason)
      on conflict do nothing;
    end if;
    update carillon.reports p set applied_at = clock_timestamp() where p.provider = r.provider and p.report_id = r.report_id;
    applied := applied + 1;
  end loop;
  return applied;
end
$$;

-- Where a user can be pushed to. A token belongs to one user at a time: whoever registered it last.
create table carillon.devices (
  tenant       integer not null references carillon.tenants,
  token        text not null,
  user_id      text not null,
  platform     text not null check (platform in ('ios', 'android', 'web')),
  subscription json,
  created_at   timestamptz not null default clock_timestamp(),
  updated_at   timestamptz not null default clock_timestamp(),
  dead_at      timestamptz,
  dead_reason  text,
  primary key (tenant, token)
);
create index devices_of_user on carillon.devices (tenant, user_id);
create index devices_dead on carillon.devices (dead_at) where dead_at is not null;

-- A tenant's own account with a provider, sealed with AES-256-GCM.
create table carillon.credentials (
  tenant     integer not null references carillon.tenants,
  provider   text not null,
  sealed     text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (tenant, provider)
);

-- What would have gone out, for developers without credentials. The latest few.
create table carillon.dev_messages (
  id              bigint generated always as identity primary key,
  tenant          integer not null,
  notification_id uuid not null,
  channel         text not null,
  message         json not null,
  at              timestamptz not null default clock_timestamp()
);
create index dev_messages_of_tenant on carillon.dev_messages (tenant, id);
