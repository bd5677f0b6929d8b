// What workers tell each other about providers and tenants' receivers: a row for each that was in trouble of late. Only a hint.

import type { Queryable } from "#store/connection/database.ts";

export type BreakerRow = {
  account: string;
  /** Of a receiver only. */
  tenant: number | null;
  state: "closed" | "half-open" | "open";
  openMs: number;
  openings: number;
  reason: string | null;
  pausedMs: number;
  worker: number;
  /** Grows with every change. */
  changedAt: number;
};

type Of = { account: string; tenant?: number | undefined };
export type BreakerChange = Of & Pick<BreakerRow, "state" | "openMs" | "openings" | "reason" | "worker">;
export type Pause = Of & { ms: number; worker: number };

/** Tenants name as many receivers as they like; of each the workers tell each other about so many, and find out the rest themselves. */
const MOST_RECEIVERS = 100;
const MAY_TELL = `($2::integer is null
  or (select count(*) from carillon.breakers where tenant = $2 and account <> $1) < ${MOST_RECEIVERS})`;

export async function tellBreaker(db: Queryable, change: BreakerChange): Promise<void> {
  const { account, tenant, state, openMs, openings, reason, worker } = change;
  await db.query(
    `insert into carillon.breakers (account, tenant, state, until, openings, reason, worker)
     select $1, $2, $3, clock_timestamp() + $4 * interval '1 ms', $5, $6, $7 where ${MAY_TELL}
     on conflict (account) do update set state = excluded.state, until = excluded.until, openings = excluded.openings,
       reason = excluded.reason, worker = excluded.worker, changed_at = clock_timestamp()`,
    [account, tenant ?? null, state, openMs, openings, reason, worker],
  );
}

export async function tellPause(db: Queryable, { account, tenant, ms, worker }: Pause): Promise<void> {
  await db.query(
    `insert into carillon.breakers as b (account, tenant, state, until, openings, worker, paused_until)
     select $1, $2, 'closed', clock_timestamp(), 0, $4, clock_timestamp() + $3 * interval '1 ms' where ${MAY_TELL}
     on conflict (account) do update set paused_until = greatest(b.paused_until, excluded.paused_until)`,
    [account, tenant ?? null, ms, worker],
  );
}

// Whoever was to find out whether it is back may be gone, or had nothing to send.
const SELECT = `select account, tenant, openings, case when greatest(until, changed_at) < clock_timestamp() - interval '2 minutes'
      then 'closed' else state end as state,
    reason, worker, date_part('epoch', changed_at) * 1000 as "changedAt",
    greatest(0, date_part('epoch', until - clock_timestamp()) * 1000) as "openMs",
    coalesce(greatest(0, date_part('epoch', paused_until - clock_timestamp()) * 1000), 0) as "pausedMs"
  from carillon.breakers`;

export async function readBreakers(db: Queryable): Promise<BreakerRow[]> {
  const { rows } = await db.query<BreakerRow>({ name: "carillon-breakers", text: SELECT });
  return rows;
}

/** Of these accounts, and of the tenant's receivers. */
export async function readBreakersOf(
  db: Queryable,
  accounts: readonly string[],
  tenant: number,
): Promise<Map<string, BreakerRow>> {
  const { rows } = await db.query<BreakerRow>(`${SELECT} where account = any ($1) or tenant = $2`, [accounts, tenant]);
  return new Map(rows.map((row) => [row.account, row]));
}

/** Those of which nothing is left to say: they count as closed. */
export async function forgetBreakers(db: Queryable): Promise<void> {
  await db.query(
    `delete from carillon.breakers
     where greatest(until, changed_at, paused_until) < clock_timestamp() - interval '2 minutes'`,
  );
}
