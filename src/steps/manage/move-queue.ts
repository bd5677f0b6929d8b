// Moves ready work from one engine to another, and back. It is the deployment's: only those who run it have to do with it.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import type { MoveStrategy, PlaceName } from "#domain/handoff.ts";
import { Problem } from "#domain/problems.ts";
import { MOST_WAITING } from "#domain/statistics.ts";
import {
  abortMove,
  beginMove,
  currentPlace,
  findMove,
  listPlaces,
  lockMoves,
  type Move,
  type Place,
} from "#queue/postgres/moves.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { listEngines } from "#store/workers.ts";
import { isOperator, mustOperate } from "./keys.ts";

export type MoveWorld = { pool: pg.Pool; silentMs: number };
export type MoveOrder = { target: PlaceName; strategy: MoveStrategy };

/** Where ready work waits. How much, and what is being moved, is for those who run the deployment. */
export type Whereabouts = { engine: PlaceName; places: readonly Place[]; move: Move | undefined };

export async function findWhereabouts(db: Queryable, actor: KeyActor): Promise<Whereabouts> {
  const engine = await currentPlace(db);
  if (!isOperator(actor)) return { engine, places: [], move: undefined };
  return { engine, places: await listPlaces(db, MOST_WAITING), move: await findMove(db) };
}

export async function moveQueue(
  { pool, silentMs }: MoveWorld,
  actor: KeyActor,
  { target, strategy }: MoveOrder,
): Promise<Move | Problem> {
  const may = mustOperate(actor);
  if (may !== true) return may;
  return inTransaction(pool, async (tx) => {
    await lockMoves(tx);
    const last = await findMove(tx);
    if (last && last.endedAt === null)
      return new Problem("MOVE_REFUSED", `from ${last.source} to ${last.target} is under way: let it end, or abort it`);
    const source = await currentPlace(tx);
    if (source === target) return new Problem("MOVE_REFUSED", `what is accepted goes to ${target} already`);
    const unreachable = await reach(tx, target, silentMs);
    if (unreachable) return unreachable;
    await beginMove(tx, source, target, strategy);
    await writeAudit(tx, actor, {
      action: "queue.move",
      object: { kind: "queue" },
      after: { source, target, strategy },
    });
    return (await findMove(tx)) as Move;
  });
}

/** Everybody who takes notifications must be able to take them there: who cannot would stand idle, unseen. */
async function reach(tx: Queryable, target: PlaceName, silentMs: number): Promise<Problem | undefined> {
  if (target === "postgres") return undefined;
  const workers = await listEngines(tx, silentMs);
  const cannot = workers.filter(({ engines }) => !engines.includes(target));
  if (workers.length === 0) return new Problem("MOVE_REFUSED", `no worker is alive that could take from ${target}`);
  const [first] = cannot;
  if (!first) return undefined;
  const detail = `${cannot.length} of ${workers.length} workers cannot take from ${target}, ${first.name} for one: set them up for it first`;
  return new Problem("MOVE_REFUSED", detail);
}

export async function abortQueueMove({ pool }: MoveWorld, actor: KeyActor): Promise<Move | Problem> {
  const may = mustOperate(actor);
  if (may !== true) return may;
  return inTransaction(pool, async (tx) => {
    await lockMoves(tx);
    const move = await findMove(tx);
    if (!move || !(await abortMove(tx, move))) return new Problem("MOVE_REFUSED", "nothing is being moved");
    const { source, target } = move;
    await writeAudit(tx, actor, { action: "queue.move-abort", object: { kind: "queue" }, before: { source, target } });
    return (await findMove(tx)) as Move;
  });
}
