// How many attempts at a notification may have sent it: their answers were lost, or their workers. A retry by hand begins anew.
//
// Few ever ask, so it is counted when they do, in what is written anyway: it outlives workers and restarts, and costs the others nothing.

import type { Queryable } from "#store/connection/database.ts";

const COUNT = `
  select x.id, d.doubts from unnest($1::uuid[]) as x(id) cross join lateral (
    select count(*)::int as doubts from carillon.events e
    where e.notification_id = x.id and e.type = 'attempt' and e.outcome in ('ambiguous', 'lost')
      and not exists (
        select from carillon.events r where r.notification_id = x.id and r.type = 'retried' and (r.seq, r.at) > (e.seq, e.at))
  ) d`;

export async function countDoubts(db: Queryable, ids: readonly string[]): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.query<{ id: string; doubts: number }>({
    name: "carillon-doubts",
    text: COUNT,
    values: [ids],
  });
  return new Map(rows.map(({ id, doubts }) => [id, doubts]));
}
