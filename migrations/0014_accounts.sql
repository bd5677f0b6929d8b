-- Reports are about messages of the account that signed them, and of no other.

-- Whose account carried a message, and whose signature a report bears: the tenant's number for its own account, 0 for the
-- deployment's. Of what was sent before this, a tenant that has an account of its own today is taken to have used it.
alter table carillon.receipts add column owner integer not null default 0;
update carillon.receipts r set owner = r.tenant
from carillon.credentials c where c.tenant = r.tenant and c.provider = r.provider;
alter table carillon.receipts drop constraint receipts_pkey, add primary key (provider, owner, receipt);

-- Nobody knows any more who signed those that wait.
delete from carillon.reports where applied_at is null;
alter table carillon.reports add column owner integer not null default 0;
alter table carillon.reports drop constraint reports_pkey, add primary key (provider, owner, report_id);
create index reports_waiting_of_owner on carillon.reports (owner, provider) where applied_at is null;

-- Moves a notification by a report: sent becomes delivered, or failed after all. A failure counts whichever of the two came first, so
-- that the order in which reports arrive does not matter. The report is locked by the caller.
create function carillon.apply_report(p carillon.reports, of_tenant integer, of_id uuid) returns void
language plpgsql as $$
declare
  standing carillon.status;
begin
  -- Reports of the same notification one after the other.
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = of_id for update;
  select n.status into standing from carillon.records n where n.tenant = of_tenant and n.id = of_id;
  if p.kind = 'delivered' and standing = 'sent' or p.kind = 'failed' and standing in ('sent', 'delivered') then
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, provider, error, detail)
    values (of_id, of_tenant, case p.kind when 'delivered' then 'delivered' else 'bounced' end, standing,
      p.kind::carillon.status, p.provider, p.reason,
      json_strip_nulls(json_build_object('reportedAt', p.at, 'code', p.code, 'receipt', p.receipt)));
  end if;
  if p.suppress is not null then
    insert into carillon.suppressions (tenant, address, why, reason) values (of_tenant, lower(p.suppress), p.why, p.reason)
    on conflict do nothing;
  end if;
  update carillon.reports x set applied_at = clock_timestamp()
  where x.provider = p.provider and x.owner = p.owner and x.report_id = p.report_id;
end
$$;

-- Applies those of these reports whose receipt is known. Answers with how many.
create function carillon.apply_reports_of(of_provider text, of_owner integer, ids text[]) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  r record;
  applied integer := 0;
begin
  for r in
    select p as report, x.tenant, x.notification_id from carillon.reports p
    join carillon.receipts x on x.provider = p.provider and x.owner = p.owner and x.receipt = p.receipt
    where p.provider = of_provider and p.owner = of_owner and p.report_id = any (ids) and p.applied_at is null
    order by p.received_at, p.report_id for update of p skip locked
  loop
    perform carillon.apply_report(r.report, r.tenant, r.notification_id);
    applied := applied + 1;
  end loop;
  return applied;
end
$$;

-- The same for those that came before their receipt.
create or replace function carillon.apply_reports(most integer) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  r record;
  applied integer := 0;
begin
  for r in
    select p as report, x.tenant, x.notification_id from carillon.reports p
    join carillon.receipts x on x.provider = p.provider and x.owner = p.owner and x.receipt = p.receipt
    where p.applied_at is null order by p.received_at limit most for update of p skip locked
  loop
    perform carillon.apply_report(r.report, r.tenant, r.notification_id);
    applied := applied + 1;
  end loop;
  return applied;
end
$$;
