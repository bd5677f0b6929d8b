// The limits' state: one row per key, see migration 0010 for what it means.

import type { LimitState } from "#domain/gcra.ts";
import type { Queryable } from "#store/connection/database.ts";

export type LimitAsk = {
  q: number;
  r: number;
  p: number;
  k: { k: string; n: number; l: [period: number, intervalMs: number, burst: number][] }[];
};
export type LimitAnswer = { isGranted: boolean; isFull: boolean; waitMs: number; key: string | null };

/** All of them in one statement and one commit, in the order given. */
export async function takeLimits(db: Queryable, asks: readonly LimitAsk[]): Promise<LimitAnswer[]> {
  const { rows } = await db.query<LimitAnswer>({
    name: "carillon-take-limits",
    text: `select is_granted as "isGranted", is_full as "isFull", wait_ms as "waitMs", wait_key as key
      from carillon.take_limits($1)`,
    values: [JSON.stringify(asks)],
  });
  return rows;
}

export async function delayLimit(db: Queryable, key: string, ms: number): Promise<void> {
  await db.query(
    `insert into carillon.limits as l (key, blocked_until, idle_at)
     select $1, until, until from (select date_part('epoch', clock_timestamp()) * 1000 + $2 as until) x
     on conflict (key) do update set blocked_until = greatest(l.blocked_until, excluded.blocked_until),
       idle_at = greatest(l.idle_at, excluded.idle_at)`,
    [key, ms],
  );
}

export async function readLimits(db: Queryable, keys: readonly string[]): Promise<LimitState[]> {
  const { rows } = await db.query<LimitState>(
    `select key, tats, blocked_until as "blockedUntil", line_at as "lineAt",
       date_part('epoch', clock_timestamp()) * 1000 as now
     from carillon.limits where key = any ($1)`,
    [keys],
  );
  return rows;
}

const FORGET_BATCH = 10_000;

/** All keys of which nothing is left to say, so many at a time: recipients may be new by the million. */
export async function forgetIdleLimits(db: Queryable): Promise<void> {
  while ((await forgetSome(db)) === FORGET_BATCH);
}

async function forgetSome(db: Queryable): Promise<number | null> {
  const { rowCount } = await db.query(
    `delete from carillon.limits where key = any (array(
       select key from carillon.limits where idle_at < date_part('epoch', clock_timestamp()) * 1000
       order by key limit ${FORGET_BATCH} for update skip locked))`,
  );
  return rowCount;
}
