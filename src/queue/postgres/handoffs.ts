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
    text: `select number::float8 as number, engine, priority as rank, count(*)::integer as size, json_agg(place) as places, json_agg(seq) as seqs, json_agg(tenant) as tenants,
        json_agg(pool) as pools
      from unnest($1::bigint[]) as n cross join lateral (select * from carillon.handed where number = n order by place) h
      group by number, engine, priority order by number`,
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

/** The same of some of them only, by the number of their handoff and their own. */
export async function bringSomeHome(
  db: Queryable,
  wanted: readonly { handoff: number; seq: number }[],
): Promise<number> {
  const { rows } = await db.query<{ n: number }>({
    name: "carillon-handoffs-some-home",
    text: `
      with taken as materialized (
        select h.number, carillon.queue_take_back(h.number, h.seqs) as seqs from (
          select number, array_agg(seq) as seqs from unnest($1::bigint[], $2::bigint[]) as x(number, seq) group by number order by number
        ) h
      ), home as (
        insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at, pool)
        select h.priority, h.seq, h.tenant, h.id, 0, h.expires_at, h.pool from taken t
        cross join lateral (select * from carillon.handed h where h.number = t.number) h where h.seq = any (t.seqs)
        returning 1
      )
      select count(*)::integer as n from home`,
    values: [wanted.map(({ handoff }) => handoff), wanted.map(({ seq }) => seq)],
  });
  return rows[0]?.n ?? 0;
}

/** Of an engine that does not know itself what it was offered. Handoffs are locked in the order of their numbers, as everywhere. */
export async function noteOffered(db: Queryable, wanted: readonly number[]): Promise<void> {
  await db.query({
    name: "carillon-handoffs-offered",
    text: `
      with open as materialized (
        select h.number from (select distinct n from unnest($1::bigint[]) as n order by n) m
        cross join lateral (select number from carillon.handoffs where number = m.n for update) h
      )
      update carillon.handoffs set offered_at = clock_timestamp() where number = any (array(select number from open))`,
    values: [wanted],
  });
}

/** How an offer stands: nobody has made it, it was made long ago, or lately. */
export type OfferedHandoff = { number: number; rank: number; isDue: boolean; isOld: boolean };

/** After that number; or, without one, the last. `dueMs` after it was offered it is to be offered again. */
export async function listOffered(
  db: Queryable,
  engine: EngineName,
  { after, limit, dueMs, oldMs }: { after: number | undefined; limit: number; dueMs: number; oldMs: number },
): Promise<OfferedHandoff[]> {
  const order = after === undefined ? "desc" : "asc";
  const { rows } = await db.query<OfferedHandoff>({
    name: `carillon-handoffs-offered-${order}`,
    text: `select number::float8 as number, priority as rank,
        case when offered_at is null then handed_at < clock_timestamp() - ${THEIRS} else offered_at < clock_timestamp() - $4 * interval '1 ms' end as "isDue",
        coalesce(offered_at <= clock_timestamp() - $5 * interval '1 ms', false) as "isOld"
      from carillon.handoffs where engine = $1 and ($3::bigint is null or number > $3) order by handoffs.number ${order} limit $2`,
    values: [engine, limit, after, dueMs, oldMs],
  });
  return rows;
}
