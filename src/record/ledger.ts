// The ledger: what was accepted is what waits and what has ended.
//
// One statement, hence one snapshot: the tallies, the few facts that they have not counted yet, and the queue. What is counted, what is told
// and what waits are written by the same transactions. An ending counts once for each event that leads to it, less those that lead away
// from it again.

import { MOST_WAITING } from "#domain/statistics.ts";
import { ENDINGS, type Ending } from "#domain/status.ts";
import type { Queryable } from "#store/connection/database.ts";
import { readEpoch } from "./feed.ts";
import { IS_COUNTED, LATELY } from "./lately.ts";

/** `isEstimate`: what waits was not counted to its end, or what happened lately not looked at. */
export type Ledger = { accepted: number; waiting: number; isEstimate: boolean } & { [ending in Ending]: number };

type Row = {
  isCounted: boolean;
  isBehind: boolean;
  accepted: number;
  waiting: number;
  endings: { [ending: string]: number } | null;
};

const endingsOf = (moves: string) => `
  (select json_object_agg(status, n) from (
    select status, sum(change * n) as n from ${moves} moves cross join lateral (values (becomes, 1), (was, -1)) as ends(status, change)
    group by status) sums)`;

const COUNTED = `
  with ${LATELY}, moves as materialized (
    select event, was, becomes, count as n from carillon.tallies where tenant = $1 and grain = 'ever'
    union all
    select 'accepted', '', '', count(*) from lately l
      where l.number = 0 and exists (select from carillon.notifications x where x.tenant = $1 and x.id = l.id)
    union all
    select e.type, e.from_status::text, e.to_status::text, 1 from lately l cross join lateral (
      select * from carillon.events x where l.number > 0 and x.notification_id = l.id and x.seq = l.number offset 0) e
  )
  select ${IS_COUNTED} as "isCounted",
    bounds.is_behind as "isBehind", (select coalesce(sum(n), 0)::float8 from moves where event = 'accepted') as accepted,
    carillon.queue_waiting($1, ${MOST_WAITING + 1})::float8 as waiting, ${endingsOf("moves")} as endings
  from bounds`;

// As long as what was there before is not counted, or where nobody counts.
const WHOLE = `
  select true as "isCounted", false as "isBehind",
    (select count(*)::float8 from carillon.notifications where tenant = $1) as accepted,
    (select count(*)::float8 from carillon.queue_entries where tenant = $1) as waiting,
    ${endingsOf(`(
      select from_status::text as was, to_status::text as becomes, count(*) as n from carillon.events where tenant = $1 group by 1, 2)`)} as endings`;

export async function readLedger(db: Queryable, tenant: number): Promise<Ledger> {
  // What is told in an epoch that has no number yet would be left out.
  await readEpoch(db);
  const row = await read(db, "carillon-ledger-tallied", COUNTED, tenant);
  if (!row?.isCounted) return { ...(await countWhole(db, tenant)), isEstimate: false };
  const { accepted, waiting, isBehind } = row;
  const endings = endingsIn(row);
  const isEstimate = isBehind || waiting > MOST_WAITING;
  const ended = Object.values(endings).reduce((sum, count) => sum + count, 0);
  return { accepted, waiting: isEstimate ? Math.max(0, accepted - ended) : waiting, isEstimate, ...endings };
}

/** What waits in each lane by the tallies alone, which are a moment behind; of lanes with nothing there is nothing. */
export async function readWaiting(db: Queryable, tenant: number): Promise<ReadonlyMap<number, number>> {
  const { rows } = await db.query<{ lane: number; n: number }>({
    name: "carillon-waiting",
    text: `select lane, sum(count * ((event = 'accepted')::int + (was = any ($2))::int - (becomes = any ($2))::int))::float8 as n
      from carillon.tallies where tenant = $1 and grain = 'ever' group by lane`,
    values: [tenant, ENDINGS],
  });
  return new Map(rows.map(({ lane, n }) => [lane, n]));
}

async function countWhole(db: Queryable, tenant: number): Promise<Omit<Ledger, "isEstimate">> {
  const row = await read(db, "carillon-ledger", WHOLE, tenant);
  const { accepted = 0, waiting = 0 } = row ?? {};
  return { accepted, waiting, ...endingsIn(row) };
}

async function read(db: Queryable, name: string, text: string, tenant: number): Promise<Row | undefined> {
  const { rows } = await db.query<Row>({ name, text, values: [tenant] });
  return rows[0];
}

const endingsIn = (row: Row | undefined): { [ending in Ending]: number } =>
  Object.fromEntries(ENDINGS.map((ending) => [ending, Number(row?.endings?.[ending] ?? 0)])) as {
    [ending in Ending]: number;
  };
