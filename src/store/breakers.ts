// What workers tell each other about providers: a row per account that ever was in trouble. Only a hint.

import type { Queryable } from "./database.ts";

export type BreakerRow = {
  account: string;
  state: "closed" | "half-open" | "open";
  openMs: number;
  openings: number;
  reason: string | null;
  pausedMs: number;
  worker: number;
  /** Grows with every change. */
  changedAt: number;
};

export type BreakerChange = Pick<BreakerRow, "account" | "state" | "openMs" | "openings" | "reason" | "worker">;

export async function tellBreaker(db: Queryable, change: BreakerChange): Promise<void> {
  const { account, state, openMs, openings, reason, worker } = change;
  await db.query(
    `insert into carillon.breakers (account, state, until, openings, reason, worker)
     values ($1, $2, clock_timestamp() + $3 * interval '1 ms', $4, $5, $6)
     on conflict (account) do update set state = excluded.state, until = excluded.until, openings = excluded.openings,
       reason = excluded.reason, worker = excluded.worker, changed_at = clock_timestamp()`,
    [account, state, openMs, openings, reason, worker],
  );
}

export async function tellPause(db: Queryable, account: string, ms: number, worker: number): Promise<void> {
  await db.query(
    `insert into carillon.breakers as b (account, state, until, openings, worker, paused_until)
     values ($1, 'closed', clock_timestamp(), 0, $3, clock_timestamp() + $2 * interval '1 ms')
     on conflict (account) do update set paused_until = greatest(b.paused_until, excluded.paused_until)`,
    [account, ms, worker],
  );
}

export async function readBreakers(db: Queryable): Promise<BreakerRow[]> {
  const { rows } = await db.query<BreakerRow>({
    name: "carillon-breakers",
    // Whoever was to find out whether it is back may be gone, or had nothing to send.
    text: `select account, openings, case when greatest(until, changed_at) < clock_timestamp() - interval '2 minutes'
          then 'closed' else state end as state,
        reason, worker, date_part('epoch', changed_at) * 1000 as "changedAt",
        greatest(0, date_part('epoch', until - clock_timestamp()) * 1000) as "openMs",
        coalesce(greatest(0, date_part('epoch', paused_until - clock_timestamp()) * 1000), 0) as "pausedMs"
      from carillon.breakers`,
  });
  return rows;
}
