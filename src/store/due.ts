// When the next of something will be due.
//
// Statements compare with the time at which they began: never early, and an index can be used, which a clock that moves
// while the statement runs would forbid.

import type { Queryable } from "#store/connection/database.ts";

/** `nowMs` is what the database's clock showed, `inMs` how long after that the next is due; undefined where nothing waits. */
export type Next = { nowMs: number; inMs: number | undefined };

/** `at` is an expression for the earliest of them, one probe of an index. */
export async function readNext(db: Queryable, name: string, at: string): Promise<Next> {
  const { rows } = await db.query<{ nowMs: number; inMs: number | null }>({
    name: `carillon-next-${name}`,
    text: `select date_part('epoch', now) * 1000 as "nowMs", date_part('epoch', at - now) * 1000 as "inMs"
      from (select carillon.now() as now, (${at}) as at) next`,
  });
  const { nowMs = 0, inMs } = rows[0] ?? {};
  return { nowMs, inMs: inMs ?? undefined };
}
