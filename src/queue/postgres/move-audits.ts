// The audit of a move: whether everything that was accepted has ended or waits in one place. migrations/0046_move_audits.sql says what is looked at, and how.

import type { PlaceName } from "#domain/handoff.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Of what this engine was given: accepted = ended + waiting, unless something is amiss. */
export type EngineAudit = { engine: PlaceName; accepted: number; ended: number; waiting: number };

export type MoveAudit = {
  state: "looking" | "balanced" | "unbalanced";
  /** False where not everything could be looked at: too much waited when it began, or the feed could no longer tell all of it. */
  isWhole: boolean;
  engines: EngineAudit[];
  /** How many are nowhere, in two places, or have ended and yet wait; some of them. */
  amiss: number;
  examples: string[];
  /** Milliseconds; null as long as it goes on. */
  at: number | null;
};

/** As JSON, of a row `m` of engine_moves; null where there is none yet. */
export const AUDIT = `case when m.until is not null then (
  select json_build_object('isWhole', m.is_whole, 'at', extract(epoch from m.audited_at) * 1000, 'amiss', coalesce(sum(a.amiss), 0),
    'state', case when coalesce(sum(a.amiss), 0) > 0 then 'unbalanced' when m.audited_at is null then 'looking' else 'balanced' end,
    'examples', coalesce((select json_agg(e) from (select unnest(x.examples) as e from carillon.engine_audits x where x.move = m.id limit 20) e), '[]'),
    'engines', coalesce(json_agg(json_build_object('engine', a.engine, 'accepted', a.accepted, 'ended', a.ended, 'waiting', a.waiting) order by a.engine)
      filter (where a.engine is not null), '[]'))
  from carillon.engine_audits a where a.move = m.id) end`;

/** Has everything looked at that was accepted until now. Within a transaction in which nobody else begins or ends a move. */
export async function beginAudit(tx: Queryable, move: number): Promise<void> {
  await tx.query("select carillon.queue_audit($1)", [move]);
}

/** One step of what is to be looked at. Answers with how many were, and which move's audit is over by that. */
export async function auditOn(
  db: Queryable,
  most: number,
): Promise<{ looked: number; id: number | undefined; isOver: boolean }> {
  const { rows } = await db.query<{ looked: number; is_over: boolean; id: number | null }>({
    name: "carillon-audit-on",
    text: "select looked, is_over, id::float8 as id from carillon.queue_audit_on($1)",
    values: [most],
  });
  const { looked = 0, is_over: isOver = false, id = null } = rows[0] ?? {};
  return { looked, id: id ?? undefined, isOver };
}
