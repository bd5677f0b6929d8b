// The ledger: what was accepted is what waits and what has ended.

import { ENDINGS, type Ending } from "#domain/status.ts";
import type { Queryable } from "#store/connection/database.ts";

export type Ledger = { accepted: number; waiting: number } & { [ending in Ending]: number };

/**
 * One statement, hence one snapshot: what was accepted must equal what waits plus what ended.
 * An ending counts once for each event that leads to it, less those that lead away from it again.
 */
export async function readLedger(db: Queryable, tenant: number): Promise<Ledger> {
  const { rows } = await db.query<{ accepted: number; waiting: number; endings: { [ending: string]: number } | null }>({
    name: "carillon-ledger",
    text: `select
        (select count(*)::float8 from carillon.notifications where tenant = $1) as accepted,
        (select count(*)::float8 from carillon.queue_entries where tenant = $1) as waiting,
        (select json_object_agg(status, n) from (
          select status, sum(change * n) as n from (
            select from_status, to_status, count(*) as n from carillon.events where tenant = $1 group by 1, 2) moves,
            lateral (values (to_status, 1), (from_status, -1)) as ends(status, change)
          group by status) sums) as endings`,
    values: [tenant],
  });
  const row = rows[0] ?? { accepted: 0, waiting: 0, endings: {} };
  const endings = Object.fromEntries(ENDINGS.map((ending) => [ending, Number(row.endings?.[ending] ?? 0)]));
  return { accepted: row.accepted, waiting: row.waiting, ...(endings as { [ending in Ending]: number }) };
}
