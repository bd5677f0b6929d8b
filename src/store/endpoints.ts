// Endpoints: where tenants have callbacks sent. How they fare is written by endpoint-health.ts.

import type { CallbackPolicy, EndpointState, FifoKey } from "#domain/endpoint.ts";
import type { Rate } from "#domain/gcra.ts";
import type { Queryable } from "#store/connection/database.ts";

/** What a tenant says of an endpoint. */
export type EndpointSettings = {
  /** Null for the one that every tenant has for its requests. */
  url: string | null;
  /** Null for all. */
  events: string[] | null;
  policy: CallbackPolicy;
  fifo: FifoKey | null;
  rate: Rate | null;
  description: string | null;
};
export type EndpointRow = EndpointSettings & {
  tenant: number;
  id: string;
  state: EndpointState;
  /** Why it is paused or disabled. */
  reason: string | null;
  sealed: string;
  publicKey: string;
  previousSealed: string | null;
  previousUntil: Date | null;
  createdAt: Date;
  /** By its tenant, or because it was disabled. */
  changedAt: Date;
  lastSuccessAt: Date | null;
  failingSince: Date | null;
};
export type NewEndpoint = EndpointSettings & Pick<EndpointRow, "tenant" | "id" | "sealed" | "publicKey">;

const COLUMNS = `tenant, id, url, events, policy, fifo, rate, description, state, reason, sealed, public_key as "publicKey",
  previous_sealed as "previousSealed", previous_until as "previousUntil", created_at as "createdAt", changed_at as "changedAt",
  last_success_at as "lastSuccessAt", failing_since as "failingSince"`;

export async function findEndpoint(db: Queryable, tenant: number, id: string): Promise<EndpointRow | undefined> {
  const { rows } = await db.query<EndpointRow>({
    name: "carillon-endpoint",
    text: `select ${COLUMNS} from carillon.endpoints where tenant = $1 and id = $2`,
    values: [tenant, id],
  });
  return rows[0];
}

/** Kept from being changed by anybody else until the transaction ends. */
export async function lockEndpoint(tx: Queryable, tenant: number, id: string): Promise<EndpointRow | undefined> {
  const { rows } = await tx.query<EndpointRow>(
    `select ${COLUMNS} from carillon.endpoints where tenant = $1 and id = $2 for no key update`,
    [tenant, id],
  );
  return rows[0];
}

/** All of these tenants', the oldest first. */
export async function findEndpointsOf(db: Queryable, tenants: readonly number[]): Promise<EndpointRow[]> {
  const { rows } = await db.query<EndpointRow>({
    name: "carillon-endpoints-of",
    text: `select ${COLUMNS} from carillon.endpoints where tenant = any ($1::int[]) order by tenant, created_at, id`,
    values: [tenants],
  });
  return rows;
}

/** Those of these that there are. */
export async function findEndpointsNamed(
  db: Queryable,
  names: readonly Pick<EndpointRow, "tenant" | "id">[],
): Promise<EndpointRow[]> {
  const { rows } = await db.query<EndpointRow>({
    name: "carillon-endpoints-named",
    text: `select ${COLUMNS} from carillon.endpoints where (tenant, id) in (select * from unnest($1::int[], $2::text[]))`,
    values: [names.map(({ tenant }) => tenant), names.map(({ id }) => id)],
  });
  return rows;
}

/** How many it has besides the built-in one. Whoever else counts them waits until the transaction ends; sends do not. */
export async function countEndpointsAlone(tx: Queryable, tenant: number): Promise<number> {
  await tx.query("select from carillon.tenants where id = $1 for no key update", [tenant]);
  const { rows } = await tx.query<{ n: number }>(
    "select count(*)::int as n from carillon.endpoints where tenant = $1 and url is not null",
    [tenant],
  );
  return rows[0]?.n ?? 0;
}

/** Undefined when there is one of that id. From now on the tenant's notifications are followed. */
export async function insertEndpoint(tx: Queryable, endpoint: NewEndpoint): Promise<EndpointRow | undefined> {
  const { tenant, id, url, events, policy, fifo, rate, description, sealed, publicKey } = endpoint;
  const { rows } = await tx.query<EndpointRow>(
    `with followed as (
       insert into carillon.callers (tenant) select $1 where not exists (select from carillon.callers where tenant = $1)
     )
     insert into carillon.endpoints (tenant, id, url, events, policy, fifo, rate, description, sealed, public_key)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing returning ${COLUMNS}`,
    [tenant, id, url, events, policy, fifo, rate && JSON.stringify(rate), description, sealed, publicKey],
  );
  return rows[0];
}

export async function updateEndpoint(
  tx: Queryable,
  { tenant, id }: Pick<EndpointRow, "tenant" | "id">,
  { url, events, policy, fifo, rate, description }: EndpointSettings,
): Promise<EndpointRow | undefined> {
  const { rows } = await tx.query<EndpointRow>(
    `update carillon.endpoints set url = $3, events = $4, policy = $5, fifo = $6, rate = $7, description = $8,
       changed_at = carillon.now()
     where tenant = $1 and id = $2 returning ${COLUMNS}`,
    [tenant, id, url, events, policy, fifo, rate && JSON.stringify(rate), description],
  );
  return rows[0];
}

/** Active again, it has its time to succeed again. */
export async function setEndpointState(
  tx: Queryable,
  { tenant, id }: Pick<EndpointRow, "tenant" | "id">,
  state: EndpointState,
  reason: string | null,
): Promise<EndpointRow | undefined> {
  const { rows } = await tx.query<EndpointRow>(
    `update carillon.endpoints set state = $3, reason = $4, changed_at = carillon.now(),
       failing_since = case when $3 <> 'active' then failing_since end
     where tenant = $1 and id = $2 returning ${COLUMNS}`,
    [tenant, id, state, reason],
  );
  return rows[0];
}

/** Those before go on signing until `previousUntil`. */
export async function rotateSecrets(
  tx: Queryable,
  { tenant, id }: Pick<EndpointRow, "tenant" | "id">,
  { sealed, publicKey }: Pick<EndpointRow, "sealed" | "publicKey">,
  keepSeconds: number,
): Promise<EndpointRow | undefined> {
  const { rows } = await tx.query<EndpointRow>(
    `update carillon.endpoints set previous_sealed = case when $5 > 0 then sealed end,
       previous_until = case when $5 > 0 then carillon.now() + make_interval(secs => $5) end,
       sealed = $3, public_key = $4, changed_at = carillon.now()
     where tenant = $1 and id = $2 returning ${COLUMNS}`,
    [tenant, id, sealed, publicKey, keepSeconds],
  );
  return rows[0];
}

export async function deleteEndpoint(tx: Queryable, tenant: number, id: string): Promise<EndpointRow | undefined> {
  const { rows } = await tx.query<EndpointRow>(
    `delete from carillon.endpoints where tenant = $1 and id = $2 returning ${COLUMNS}`,
    [tenant, id],
  );
  return rows[0];
}

export type Seals = Pick<EndpointRow, "tenant" | "id" | "sealed" | "previousSealed">;

/** All tenants', in their order, from after that one on. */
export async function listSeals(db: Queryable, after: Pick<Seals, "tenant" | "id">, limit: number): Promise<Seals[]> {
  const { rows } = await db.query<Seals>(
    `select tenant, id, sealed, previous_sealed as "previousSealed" from carillon.endpoints
     where (tenant, id) > ($1, $2) order by tenant, id limit $3`,
    [after.tenant, after.id, limit],
  );
  return rows;
}

/** Puts new seals in the place of old ones, unless the secrets were changed meanwhile. */
export async function putSeals(db: Queryable, old: Seals, fresh: Seals): Promise<void> {
  await db.query(
    `update carillon.endpoints set sealed = $4, previous_sealed = $6
     where tenant = $1 and id = $2 and sealed = $3 and previous_sealed is not distinct from $5`,
    [old.tenant, old.id, old.sealed, fresh.sealed, old.previousSealed, fresh.previousSealed],
  );
}
