// Sends that are to fail, in development: each row is for the next so many of a tenant's.

import type { DevFault, NewFault } from "#domain/dev-fault.ts";
import type { Queryable } from "#store/connection/database.ts";

export type FaultRow = {
  id: string;
  provider: string | null;
  channel: string | null;
  fault: DevFault;
  next: number;
  left: number;
  retryAfterSeconds: number | null;
  at: Date;
};

/** Of each tenant. */
export const MOST_FAULTS = 100;

const COLUMNS =
  'id, provider, channel, fault, total as next, remaining as "left", retry_after_s as "retryAfterSeconds", at';

/** In the place of those that are used up, if need be; undefined where too many still wait. */
export async function insertFault(tx: Queryable, tenant: number, given: NewFault): Promise<FaultRow | undefined> {
  const { provider, channel, fault, next, retryAfterSeconds } = given;
  await tx.query("select pg_advisory_xact_lock(hashtext('carillon.dev_faults'), $1)", [tenant]);
  await tx.query(
    `delete from carillon.dev_faults where id in (
       select id from carillon.dev_faults where tenant = $1 order by remaining > 0 desc, id desc offset $2) and remaining = 0`,
    [tenant, MOST_FAULTS - 1],
  );
  const { rows } = await tx.query<FaultRow>(
    `insert into carillon.dev_faults (tenant, provider, channel, fault, total, remaining, retry_after_s)
     select $1, $2, $3, $4, $5, $5, $6
     where (select count(*) from carillon.dev_faults where tenant = $1) < ${MOST_FAULTS} returning ${COLUMNS}`,
    [tenant, provider ?? null, channel ?? null, fault, next, retryAfterSeconds ?? null],
  );
  return rows[0];
}

export async function listFaults(db: Queryable, tenant: number): Promise<FaultRow[]> {
  const { rows } = await db.query<FaultRow>(
    `select ${COLUMNS} from carillon.dev_faults where tenant = $1 order by id desc`,
    [tenant],
  );
  return rows;
}

export async function clearFaults(db: Queryable, tenant: number): Promise<number> {
  const { rowCount } = await db.query("delete from carillon.dev_faults where tenant = $1", [tenant]);
  return rowCount ?? 0;
}

export type Taken = { fault: DevFault; retryAfterSeconds: number | null };

/** The oldest that fits has one less left. */
export async function takeFault(
  db: Queryable,
  { tenant, provider, channel }: { tenant: number; provider: string; channel: string },
): Promise<Taken | undefined> {
  const { rows } = await db.query<Taken>({
    name: "carillon-dev-fault",
    text: `update carillon.dev_faults set remaining = remaining - 1 where id = (
         select id from carillon.dev_faults where tenant = $1 and remaining > 0 and coalesce(provider, $2) = $2
           and coalesce(channel, $3) = $3 order by id limit 1 for update)
       returning fault, retry_after_s as "retryAfterSeconds"`,
    values: [tenant, provider, channel],
  });
  return rows[0];
}
