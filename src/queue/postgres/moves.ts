// Where newly accepted work goes, and the way from one engine to another.

import type { MoveStrategy, PlaceName } from "#domain/handoff.ts";
import type { Queryable } from "#store/connection/database.ts";
import { AUDIT, type MoveAudit } from "./move-audits.ts";

export type Move = {
  id: number;
  source: PlaceName;
  target: PlaceName;
  strategy: MoveStrategy;
  state: "moving" | "aborting" | "done" | "aborted";
  /** What waited at the source when it began, what of that was moved, and what is left there. */
  waiting: number;
  moved: number;
  left: number;
  startedAt: Date;
  endedAt: Date | null;
  audit: MoveAudit | null;
};

/** How much waits where; `isEstimate`: it is at least that. */
export type Place = { name: PlaceName; waiting: number; isEstimate: boolean; isCurrent: boolean };

/** Listed for the audit when a move begins, of 20 bytes each. */
const MOST_LISTED = 2_000_000;
/** Looked through: each may hold a thousand. */
const MOST_HANDOFFS = 1_000;

const MOVES = `
  select id::float8 as id, source, target, strategy, state, waiting::float8 as waiting, moved::float8 as moved, started_at as "startedAt", ended_at as "endedAt",
    case when ended_at is null then carillon.queue_left(case state when 'aborting' then target else source end, last_seq) else 0 end::float8 as left,
    ${AUDIT} as audit
  from carillon.engine_moves m`;

/** That one, or else the one that is under way, or else the last. */
export async function findMove(db: Queryable, id?: number): Promise<Move | undefined> {
  const { rows } = await db.query<Move>(`${MOVES} where id = coalesce($1, id) order by id desc limit 1`, [id]);
  return rows[0];
}

/** Counted up to `most`: it costs no more however much waits. */
export async function listPlaces(db: Queryable, most: number): Promise<Place[]> {
  const { rows } = await db.query<Place>(
    `select p.name, least(w.n, $1)::float8 as waiting, w.n > $1 or w.is_cut as "isEstimate", p.name = e.name as "isCurrent"
     from carillon.engine e cross join unnest(array['postgres', 'redis', 'sqs']) with ordinality as p(name, n)
     cross join lateral (
       select count(*) as n, false as is_cut from (
         select from carillon.ready r where r.priority < 4 order by r.priority, r.tenant, r.pool, r.seq limit $1::integer + 1
       ) r where p.name = 'postgres'
       having p.name = 'postgres'
       union all
       select coalesce(sum(h.n), 0), count(*) > ${MOST_HANDOFFS} from (
         select length(done) - bit_count(done) as n from carillon.handoffs where engine = p.name order by number limit ${MOST_HANDOFFS + 1}
       ) h having p.name <> 'postgres'
     ) w
     where p.name in ('postgres', e.name) or exists (select from carillon.handoffs h where h.engine = p.name) order by p.n`,
    [most],
  );
  return rows;
}

export async function currentPlace(db: Queryable): Promise<PlaceName> {
  const { rows } = await db.query<{ name: PlaceName }>("select name from carillon.engine");
  return rows[0]?.name ?? "postgres";
}

/** Within a transaction in which nobody else begins or ends one: see lockMoves(). */
export async function beginMove(
  tx: Queryable,
  source: PlaceName,
  target: PlaceName,
  strategy: MoveStrategy,
): Promise<void> {
  await tx.query("select carillon.queue_begin_move($1, $2, $3, $4)", [source, target, strategy, MOST_LISTED]);
}

/** What goes to the target goes to the source again, and so does what waits there. False where it has ended by now. */
export async function abortMove(tx: Queryable, { id }: Pick<Move, "id">): Promise<boolean> {
  const { rows } = await tx.query<{ is_done: boolean }>("select carillon.queue_abort_move($1) as is_done", [id]);
  return rows[0]?.is_done === true;
}

export async function lockMoves(tx: Queryable): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('carillon.engine_moves', 0))");
}

/** One step of what is under way. Answers with how many were moved, and which move is over by that. */
export async function moveOn(db: Queryable, most: number): Promise<{ moved: number; overId: number | undefined }> {
  const { rows } = await db.query<{ moved: number; is_over: boolean | null; id: number | null }>({
    name: "carillon-move-on",
    text: "select moved::float8 as moved, is_over, id::float8 as id from carillon.queue_move_on($1)",
    values: [most],
  });
  const { moved = 0, is_over, id } = rows[0] ?? {};
  return { moved, overId: is_over && id !== null ? id : undefined };
}
