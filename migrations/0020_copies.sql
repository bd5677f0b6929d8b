-- Of a mail with copies every recipient is reported. What becomes of a copy says nothing about the notification, which is the
-- recipient's; an address that bounces is suppressed all the same.
alter table carillon.reports add column address text;

create or replace function carillon.apply_report(p carillon.reports, of_tenant integer, of_id uuid) returns void
language plpgsql as $$
declare
  standing carillon.status;
  is_copy boolean;
begin
  -- Reports of the same notification one after the other.
  perform from carillon.notifications n where n.tenant = of_tenant and n.id = of_id for update;
  select n.status into standing from carillon.records n where n.tenant = of_tenant and n.id = of_id;
  select lower(p.address) <> lower(n.request #>> '{recipient,email}') and exists (
      select from json_array_elements_text(n.request #> '{content,cc}') c where lower(c) = lower(p.address)
      union all
      select from json_array_elements_text(n.request #> '{content,bcc}') c where lower(c) = lower(p.address))
  into is_copy from carillon.notifications n where n.tenant = of_tenant and n.id = of_id;
  if is_copy is not true
    and (p.kind = 'delivered' and standing = 'sent' or p.kind = 'failed' and standing in ('sent', 'delivered')) then
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
