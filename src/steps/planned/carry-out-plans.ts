// Carries out plans for dead letters, batch by batch. Each batch is a transaction that sees to some and notes how far the plan came: a crash loses
// nothing, none is seen to twice, and whoever comes next goes on, in whichever process.

import { addTo, type Reason, recordTenantOf, totalOf, turnOf } from "#domain/plan.ts";
import type { Queue } from "#queue/queue.ts";
import { judgeTheseAlone } from "#record/judged.ts";
import {
  changePlan,
  countStanding,
  deletePage,
  duePlans,
  type Plan,
  type PlanChange,
  type PlannedItem,
  purge,
  putOffPlan,
  readItems,
  takePlan,
} from "#record/plans.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { countSome, LAPSES_MS } from "./count-plan.ts";
import { type Firing, fireAlone } from "./fire.ts";

export type PlansQueue = Pick<Queue, "retry">;

/** How often it is looked how the canaries fare. */
const CANARY_MS = 500;
const SCHEDULER = { kind: "process", what: "scheduler" } as const;

/** A batch for every tenant with a plan whose turn has come; answers with how many. */
export async function carryOutPlans(
  firing: Pick<Firing, "pool" | "onFailure" | "isStopping">,
  queue: PlansQueue,
): Promise<number> {
  const { pool } = firing;
  let done = 0;
  for (const { tenant, id } of await duePlans(pool)) {
    if (firing.isStopping()) break;
    const wasOurs = await fireAlone(
      firing,
      { tenant, name: `plan ${id}` },
      () => inTransaction(pool, (tx) => goOn(tx, queue, tenant, id)),
      (error) => putOffPlan(pool, tenant, id, error),
    );
    if (wasOurs !== false) done += 1;
  }
  return done;
}

async function goOn(tx: Queryable, queue: PlansQueue, tenant: number, id: string): Promise<boolean> {
  const plan = await takePlan(tx, tenant, id);
  if (!plan) return false;
  const next = await nextOf(tx, queue, plan);
  if (next.finishedAt) {
    const { state, done, skipped } = next;
    const object = { kind: "plan", name: id };
    await writeAudit(tx, SCHEDULER, { action: "plan.finish", object, tenant, after: { state, done, skipped } });
  }
  return true;
}

async function nextOf(tx: Queryable, queue: PlansQueue, plan: Plan): Promise<Plan> {
  switch (plan.state) {
    case "counting":
      return countSome(tx, plan, { waitMs: 0 });
    case "applying":
      return applySome(tx, queue, plan, turnOf(plan.rate, plan.canary ?? Number.POSITIVE_INFINITY));
    case "waiting":
      return plan.goesOn ? lookAtCanaries(tx, plan) : changePlan(tx, plan, { state: "lapsed" });
    default:
      return changePlan(tx, plan, { state: "lapsed" });
  }
}

/** So many at most of its next page. Then others leave it alone for `waitMs`. */
export async function applySome(
  tx: Queryable,
  queue: PlansQueue,
  plan: Plan,
  { count, waitMs }: { count: number; waitMs: number },
): Promise<Plan> {
  const read = await readItems(tx, plan, count);
  if (!read) return changePlan(tx, plan, { state: "done" });
  const { done, skipped } = await seeTo(tx, queue, plan, read.items);
  if (read.isLast) await deletePage(tx, plan);
  const left = plan.canary === null ? null : plan.canary - done.length;
  const isOver = plan.done + totalOf(plan.skipped) + read.items.length >= plan.counted;
  return changePlan(tx, plan, {
    ...(read.isLast ? { page: plan.page + 1, place: 0 } : { place: plan.place + read.items.length }),
    done: plan.done + done.length,
    skipped: addTo(plan.skipped, skipped),
    canary: left,
    ...(plan.canary !== null && { canaryIds: [...plan.canaryIds, ...done] }),
    ...(left === 0 ? afterCanaries(plan) : isOver ? { state: "done" } : { waitMs }),
  });
}

const afterCanaries = ({ goesOn }: Plan): PlanChange => ({
  state: "waiting",
  waitMs: goesOn ? CANARY_MS : LAPSES_MS,
});

/** What has changed since it was counted is passed over, and told. */
async function seeTo(
  tx: Queryable,
  queue: PlansQueue,
  plan: Plan,
  items: readonly PlannedItem[],
): Promise<{ done: readonly string[]; skipped: Reason[] }> {
  const { id, kind } = plan;
  const tenant = recordTenantOf(plan);
  const ids = items.map((item) => item.id);
  const judged = await judgeTheseAlone(tx, plan, ids);
  const reasons = judged.map(
    ({ reason, seq }, n): Reason | null => reason ?? (seq === items[n]?.seq ? null : "changed"),
  );
  const wanted = ids.filter((_, n) => reasons[n] === null);
  const done = kind === "purge" ? await purge(tx, tenant, wanted, id) : await queue.retry(tx, tenant, wanted);
  const skipped = reasons.filter((reason) => reason !== null);
  // Those are locked, so none should be missing; where one is, the queue knows better.
  return { done, skipped: [...skipped, ...wanted.slice(done.length).map((): Reason => "changed")] };
}

/** All sent: it goes on. While one waits it waits, too; where one has failed it waits for a person's word. */
async function lookAtCanaries(tx: Queryable, plan: Plan): Promise<Plan> {
  const {
    sent = 0,
    delivered = 0,
    pending = 0,
    queued = 0,
    processing = 0,
  } = await countStanding(tx, plan.tenant, plan.canaryIds);
  if (sent + delivered === plan.canaryIds.length) return changePlan(tx, plan, { state: "applying", canary: null });
  if (pending + queued + processing > 0) return changePlan(tx, plan, { waitMs: CANARY_MS });
  return changePlan(tx, plan, { goesOn: false, waitMs: LAPSES_MS });
}
