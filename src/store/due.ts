// Moves what has become due from the schedule to its lane.

import type { Queryable } from "./database.ts";

/** One statement, so that a row is in one place or the other. Several may run at once: each row is moved once. */
export async function moveDue(db: Queryable, limit: number): Promise<number> {
  const { rowCount } = await db.query({
    name: "carillon-due",
    text: `with due as materialized (
        select ctid as place, seq, priority, tenant, id, attempt, expires_at from carillon.schedule
        where due_at <= clock_timestamp() order by due_at limit $1 for update skip locked
      ), gone as (
        delete from carillon.schedule where ctid = any (array(select place from due))
      )
      insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
      select priority, seq, tenant, id, attempt, expires_at from due order by seq`,
    values: [limit],
  });
  return rowCount ?? 0;
}

/** Milliseconds until the next is due; undefined when nothing waits. */
export async function nextDueMs(db: Queryable): Promise<number | undefined> {
  const { rows } = await db.query<{ ms: number | null }>({
    name: "carillon-next-due",
    text: `select extract(epoch from min(due_at) - clock_timestamp())::float8 * 1000 as ms from carillon.schedule`,
  });
  return rows[0]?.ms ?? undefined;
}
