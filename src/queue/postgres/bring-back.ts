// What waits for a paused provider, back into its lane once that is paused no longer.

import type { Queryable } from "#store/connection/database.ts";

// What waits for the same accounts stands together in the index, in order of acceptance: a probe for each such list, whatever
// waits, and then only rows that go back.
const BRING_BACK = `
  with recursive awaited as (
    (select waits_for from carillon.later where waits_for is not null order by waits_for limit 1)
    union all
    select (select l.waits_for from carillon.later l where l.waits_for > a.waits_for order by l.waits_for limit 1)
    from awaited a where a.waits_for is not null
  ), paused as materialized (
    select array(select name from carillon.pauses where kind = 'provider' and (until is null or until > carillon.now())) as accounts
  ), back as materialized (
    select l.place from awaited a cross join paused p
    cross join lateral (
      select ctid as place from carillon.later l where l.waits_for = a.waits_for order by l.seq limit $1 for update skip locked
    ) l
    where not string_to_array(a.waits_for, ',') <@ p.accounts limit $1
  ), gone as (
    delete from carillon.later where ctid = any (array(select place from back))
    returning priority, seq, tenant, id, attempt, expires_at, pool
  )
  insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at, pool)
  select priority, seq, tenant, id, attempt, expires_at, pool from gone`;

export async function bringBack(db: Queryable, count: number): Promise<number> {
  const { rowCount } = await db.query({ name: "carillon-bring-back", text: BRING_BACK, values: [count] });
  // Whoever sleeps is told.
  if (rowCount) await db.query("select pg_notify('carillon_ready', '')");
  return rowCount ?? 0;
}
