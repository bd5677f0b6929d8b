-- What tenants' URLs lead to has breakers and pauses of its own, by tenant and origin.

alter table carillon.breakers add column tenant integer;
create index breakers_of_tenant on carillon.breakers (tenant) where tenant is not null;
comment on column carillon.breakers.tenant is 'Whose receiver it is; null for an account with a provider.';

-- Hints, and some of them are what one tenant's receiver said of everybody's.
delete from carillon.breakers;
