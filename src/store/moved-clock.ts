// The clock, moved: how far carillon.now() is ahead of the true time.

import type { Queryable } from "#store/connection/database.ts";

export type Clocks = { now: Date; trueNow: Date };

/** Both stand still while the statement runs. */
export async function readClocks(db: Queryable): Promise<Clocks> {
  const { rows } = await db.query<Clocks>('select carillon.now() as now, statement_timestamp() as "trueNow"');
  return rows[0] as Clocks;
}

/** One at a time moves it. */
export async function lockClock(tx: Queryable): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtext('carillon.clock'))");
}

export async function setClock(tx: Queryable, aheadMs: number): Promise<void> {
  await tx.query("select carillon.set_clock(make_interval(secs => $1))", [aheadMs / 1000]);
}

const WEEKS_AROUND = [-1, 0, 1, 2];

/** Partitions for the weeks at that instant: the keeper makes them an hour from now only, and by then others would hold their rows. */
export async function makeWeeksAround(db: Queryable, at: Date): Promise<void> {
  for (const week of WEEKS_AROUND) {
    await db.query(
      "select carillon.make_partitions(week, week) from (select $1::timestamptz + $2 * interval '7 days' as week) x",
      [at, week],
    );
  }
}
