// Sends dead letters again at once, without looking them over: a plan of its own kind, which the request that makes it carries out itself.
//
// Making it, counting and the first batch are one transaction, and each batch after it is another. Should the process die in between, the scheduler goes on
// with the plan as with any other. There may be millions, so nobody counts them all: a call looks at so many at most, and says where to go on.

import type { KeyActor } from "#domain/actor.ts";
import type { Deed, Fields } from "#domain/audit.ts";
import { MOST_A_SECOND } from "#domain/plan.ts";
import { auditedOf, type DeadLetterFilter } from "#record/dead-letters.ts";
import { type Judged, judgeFailed, judgeThese } from "#record/judged.ts";
import { deletePlan, insertPlan, lockPlan, type Plan } from "#record/plans.ts";
import { applySome } from "#steps/planned/carry-out-plans.ts";
import { countSome, PAGE, uniqueOf } from "#steps/planned/count-plan.ts";
import { type AuditPlace, amendAudit, writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { LEFT_MS, type PlanWorld } from "./plans.ts";
import type { RetryWorld } from "./retry.ts";

export type RequeueWorld = RetryWorld & Pick<PlanWorld, "newId" | "plan">;

/** By ids: whatever of them has ended badly. By filter, the newest first, from before `beforeId` on, at most `limit`. */
export type Which = { kind: "retry" | "callback-retry" } & (
  | { ids: readonly string[]; filter?: never }
  | { filter: DeadLetterFilter; beforeId: string | undefined; limit: number; ids?: never }
);
/** `remaining` is what was seen beyond those that were requeued; `nextId`, if there is more, is where to go on. */
export type Requeued = { matched: number; requeued: number; remaining: number; nextId: string | undefined };
type Seen = { matched: number; nextId: string | undefined };

/** In one call. */
export const MAX_REQUEUE = 10_000;
/** Looked at in a call; as many again are counted ahead. */
const MAX_LOOKED = 10_000;
/** Sent again with one commit. Who dies meanwhile leaves it to the scheduler. */
const BATCH = { count: PAGE, waitMs: LEFT_MS };

export async function requeue(world: RequeueWorld, actor: KeyActor, which: Which): Promise<Requeued> {
  const { pool, queue } = world;
  const log = logger(actor, which);
  let plan = await inTransaction(pool, async (tx) => log(tx, await begin(tx, world, actor, which)));
  // Should we die before it is done, the scheduler knows when to take over.
  if (plan.state === "applying") world.plan(0);
  const nextId = plan.reached ?? undefined;
  while (plan.state === "applying") {
    if (plan.done > 0) world.wake();
    plan = await inTransaction(pool, async (tx) => {
      const found = (await lockPlan(tx, plan.tenant, plan.id)) as Plan;
      return found.state === "applying" ? log(tx, await applySome(tx, queue, found, BATCH)) : found;
    });
  }
  const { done: requeued } = plan;
  if (requeued > 0) world.wake();
  if (which.ids || nextId === undefined) return { matched: requeued, requeued, remaining: 0, nextId: undefined };
  const ahead = await lookAhead(pool, actor, which, nextId);
  const isOver = ahead.matched === 0 && ahead.nextId === undefined;
  const matched = requeued + ahead.matched;
  return { matched, requeued, remaining: ahead.matched, nextId: isOver ? undefined : nextId };
}

/** What requeue would do. */
export async function countRequeued(db: Queryable, actor: KeyActor, which: Which): Promise<Requeued> {
  const { matched, nextId } = which.ids
    ? await lookAtThese(db, actor, which.kind, which.ids)
    : await lookAhead(db, actor, which, which.beforeId);
  return { matched, requeued: 0, remaining: matched, nextId };
}

/** A plan of nothing leaves no trace. */
async function begin(tx: Queryable, world: RequeueWorld, actor: KeyActor, which: Which): Promise<Plan> {
  const { kind, filter = null, ids = null } = which;
  const place = which.ids ? {} : { reached: which.beforeId };
  const about = { tenant: actor.tenant, id: world.newId(), kind, filter, ids, madeBy: actor.keyName, ...place };
  let plan = await insertPlan(tx, { ...about, prices: {}, rate: MOST_A_SECOND, waitMs: LEFT_MS });
  const counting = { waitMs: LEFT_MS, lookAt: PAGE, ...(!which.ids && { most: which.limit }) };
  while (plan.state === "counting" && plan.looked < MAX_LOOKED) plan = await countSome(tx, plan, counting);
  plan = await applySome(tx, world.queue, { ...plan, state: "applying", page: 0 }, BATCH);
  if (plan.state === "done" && plan.done === 0) await deletePlan(tx, plan);
  return plan;
}

/** However many batches it takes, the audit log has one line of it, which tells with each how many there were so far. */
function logger(actor: KeyActor, which: Which): (tx: Queryable, plan: Plan) => Promise<Plan> {
  let line: AuditPlace | undefined;
  return async (tx, plan) => {
    const { id, done: requeued } = plan;
    if (line) await amendAudit(tx, line, { requeued });
    else if (requeued > 0) line = await writeAudit(tx, actor, deedOf(which, { plan: id, requeued }));
    return plan;
  };
}

function deedOf(which: Which, done: Fields): Deed {
  const { filter } = which;
  if (which.kind === "callback-retry") {
    const kind = "callback-dead-letters";
    const { userId: endpoint, ...rest } = filter ?? {};
    // Theirs is no person.
    const shown = filter ? { filter: { ...rest, ...(endpoint !== undefined && { endpoint }) } } : { ids: which.ids };
    return { action: `${kind}.requeue`, object: { kind }, after: { ...shown, ...done } };
  }
  const deed = { action: "dead-letters.requeue", object: { kind: "dead-letters" } } as const;
  const about = filter?.userId !== undefined && { about: filter.userId };
  return { ...deed, after: { ...auditedOf(which), ...done }, ...about };
}

const sendable = (judged: readonly Judged[]): number => judged.filter(({ reason }) => reason === null).length;

async function lookAtThese(
  db: Queryable,
  { tenant }: KeyActor,
  kind: Which["kind"],
  ids: readonly string[],
): Promise<Seen> {
  return { matched: sendable(await judgeThese(db, { tenant, kind }, uniqueOf(ids))), nextId: undefined };
}

async function lookAhead(
  db: Queryable,
  { tenant }: KeyActor,
  { kind, filter = {} }: Which,
  beforeId: string | undefined,
): Promise<Seen> {
  const stretch = { beforeId: beforeId ?? null, most: MAX_LOOKED };
  const { judged, nextId } = await judgeFailed(db, { tenant, kind }, filter, stretch);
  return { matched: sendable(judged), nextId };
}
