-- Where tenants have callbacks sent: their endpoints, and what goes to one of them again.

-- Tenants that have an endpoint, or a request of which named a callback URL, once: whoever follows the feed need look at no others. Not unique,
-- so that nobody waits for another who is just writing the same: some are there twice.
create table carillon.callers (tenant integer not null);
create index callers_tenant on carillon.callers (tenant);

-- `requests` is every tenant's own, for the URLs that its requests name: it has none itself.
create table carillon.endpoints (
  tenant integer not null references carillon.tenants,
  id text not null check (id = 'requests' or id ~ '^ep_[0-9a-f]{24}$'),
  url text,
  -- Which types it is told of; null: all.
  events text[] check (events <> '{}'),
  policy text not null default 'best_effort' check (policy in ('best_effort', 'aggressive', 'persistent')),
  -- What is kept in order, one after another; null: nothing.
  fifo text check (fifo in ('notification', 'user', 'endpoint')),
  rate json,
  description text,
  state text not null default 'active' check (state in ('active', 'paused', 'disabled')),
  reason text,
  -- The secrets that sign, as they are sealed, and those before them until their end.
  sealed text not null,
  public_key text not null,
  previous_sealed text,
  previous_until timestamptz,
  created_at timestamptz not null default carillon.now(),
  changed_at timestamptz not null default carillon.now(),
  last_success_at timestamptz,
  -- Since when nothing succeeded, though something was tried.
  failing_since timestamptz,
  primary key (tenant, id),
  check ((url is null) = (id = 'requests')),
  check ((previous_sealed is null) = (previous_until is null)),
  check ((state = 'active') = (reason is null))
);
