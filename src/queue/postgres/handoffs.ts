// What was handed over to an engine, and how it comes back.

import type { EngineName, Handoff } from "#domain/handoff.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Whoever has just committed offers it himself: those are left to him for so long. */
const THEIRS = "interval '2 s'";

const numbers = (rows: readonly { number: number }[]): number[] => rows.map(({ number }) => number);

export async function numbersAfter(db: Queryable, engine: EngineName, after: number, limit: number): Promise<number[]> {
  const { rows } = await db.query<{ number: number }>({
    name: "carillon-handoffs-after",
    text: `select number::float8 as number from carillon.handoffs where number > $2 and engine = $1 order by handoffs.number limit $3`,
    values: [engine, after, limit],
  });
  return numbers(rows);
}

export async function newestNumbers(db: Queryable, engine: EngineName, limit: number): Promise<number[]> {
  const { rows } = await db.query<{ number: number }>({
    name: "carillon-handoffs-newest",
    text: `select number::float8 as number from (
        select * from carillon.handoffs where engine = $1 order by handoffs.number desc limit $2
      ) h where handed_at < clock_timestamp() - ${THEIRS}`,
    values: [engine, limit],
  });
  return numbers(rows);
}

/** Of those that are open; beyond all there were where none is. */
export async function firstNumber(db: Queryable, engine: EngineName): Promise<number> {
  const { rows } = await db.query<{ number: number }>({
    name: "carillon-handoffs-first",
    text: `select coalesce((select number from carillon.handoffs where engine = $1 order by number limit 1),
        (select last_value * 8 from carillon.handoff))::float8 as number`,
    values: [engine],
  });
  return rows[0]?.number ?? 0;
}

/** What is open of these. */
export async function readHandoffs(db: Queryable, wanted: readonly number[]): Promise<Handoff[]> {
  const { rows } = await db.query<Handoff>({
    name: "carillon-handoffs-read",
    text: `select number::float8 as number, priority as rank, json_agg(place) as places, json_agg(seq) as seqs, json_agg(tenant) as tenants,
        json_agg(id) as ids, json_agg(pool) as pools, json_agg((extract(epoch from expires_at) * 1000)::bigint) as expiries
      from unnest($1::bigint[]) as n cross join lateral (select * from carillon.handed where number = n order by place) h
      group by number, priority order by number`,
    values: [wanted],
  });
  return rows;
}

/** What waits of these waits in PostgreSQL from now on. Answers with how many. */
export async function bringHome(db: Queryable, wanted: readonly number[]): Promise<number> {
  if (wanted.length === 0) return 0;
  const { rows } = await db.query<{ n: number }>({
    name: "carillon-handoffs-home",
    text: "select carillon.queue_bring_home($1) as n",
    values: [wanted],
  });
  return rows[0]?.n ?? 0;
}
