// Plans for dead letters: made, applied, let go on and aborted by their tenants. steps/planned carries them out.

import type pg from "pg";
import type { Providers } from "#channels/providers.ts";
import type { KeyActor } from "#domain/actor.ts";
import type { Action } from "#domain/audit.ts";
import { CHANNELS } from "#domain/notification.ts";
import { OPEN_STATES, type PlanKind, type PlanState, type Prices, type REVIEWED_KINDS } from "#domain/plan.ts";
import { Problem } from "#domain/problems.ts";
import { readPrices } from "#record/costs.ts";
import { auditedOf, type DeadLetterFilter } from "#record/dead-letters.ts";
import { changePlan, countPlansAlone, insertPlan, lockPlan, type Plan, type PlanChange } from "#record/plans.ts";
import { countSome } from "#steps/planned/count-plan.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";

export type PlanWorld = {
  pool: pg.Pool;
  providers: Pick<Providers, "list" | "route">;
  newId: () => string;
  monotonic: () => number;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export type PlanRequest = {
  kind: (typeof REVIEWED_KINDS)[number];
  rate: number;
} & ({ filter: DeadLetterFilter; ids?: never } | { ids: readonly string[]; filter?: never });

/** Counting, to be looked over, or being carried out. */
export const MOST_PLANS = 10;
/** Whoever makes a plan has it counted for so long; the scheduler counts the rest. */
const COUNTED_MS = 3_000;
/** So long it is left to them: after that they are taken for dead. */
export const LEFT_MS = 5_000;
/** Of the tenant's newest notifications so many tell what a message costs. */
const PRICED = 2_000;

export async function makePlan(world: PlanWorld, actor: KeyActor, request: PlanRequest): Promise<Plan | Problem> {
  const { pool, newId, monotonic } = world;
  const startedAt = monotonic();
  const { tenant } = actor;
  const refusal = refusalOf(actor, request.kind);
  if (refusal) return refusal;
  const prices = request.kind === "purge" ? {} : await pricesOf(world, tenant);
  const { kind, filter = null, ids = null, rate } = request;
  let plan = await inTransaction(pool, async (tx) => {
    if ((await countPlansAlone(tx, tenant)) >= MOST_PLANS) {
      return new Problem("TOO_MANY_PLANS", `a tenant has ${MOST_PLANS} open plans at most`);
    }
    const about = { tenant, id: newId(), kind, filter, ids, prices, rate };
    const made = await insertPlan(tx, { ...about, madeBy: actor.keyName, waitMs: LEFT_MS });
    await writeAudit(tx, actor, {
      ...deed("plan.create", made.id),
      after: { kind, ...auditedOf(request) },
      ...(filter?.userId !== undefined && { about: filter.userId }),
    });
    return made;
  });
  if (plan instanceof Problem) return plan;
  // Should we die while we count, the scheduler knows when to take over.
  world.plan(0);
  while (plan.state === "counting" && monotonic() - startedAt < COUNTED_MS) plan = await countOn(pool, plan, LEFT_MS);
  if (plan.state === "counting") {
    plan = await countOn(pool, plan, 0);
    world.plan(0);
  }
  return plan;
}

/** Others may have come meanwhile, and aborted it. */
const countOn = (pool: pg.Pool, { tenant, id }: Plan, waitMs: number): Promise<Plan> =>
  inTransaction(pool, async (tx) => {
    const plan = (await lockPlan(tx, tenant, id)) as Plan;
    return plan.state === "counting" ? countSome(tx, plan, { waitMs }) : plan;
  });

/** What messages cost of late, by those who sent them; for the others what is said of their provider, and of the first on a channel. */
async function pricesOf({ pool, providers }: PlanWorld, tenant: number): Promise<Prices> {
  const prices: Prices = {};
  for (const { name, provider } of providers.list(tenant)) {
    const { cost } = provider.capabilities;
    if (cost !== undefined) prices[name] = cost;
  }
  Object.assign(prices, await readPrices(pool, tenant, PRICED));
  for (const channel of CHANNELS) {
    const [first] = providers.route(channel, tenant);
    const price = first && prices[first.name];
    if (price !== undefined) prices[`channel:${channel}`] = price;
  }
  return prices;
}

export type Application = {
  rate: number | undefined;
  /** So many first, after which it waits: for a word, or until those were sent. */
  canary: number | undefined;
  goesOn: boolean;
};

export const applyPlan = (
  world: ChangeWorld,
  actor: KeyActor,
  id: string,
  { rate, canary, goesOn }: Application,
): Promise<Plan | Problem> =>
  change(world, actor, id, "plan.apply", ["ready"], (plan) => ({
    state: "applying",
    rate: rate ?? plan.rate,
    canary: canary ?? null,
    goesOn,
  }));

export const continuePlan = (world: ChangeWorld, actor: KeyActor, id: string): Promise<Plan | Problem> =>
  change(world, actor, id, "plan.continue", ["waiting"], () => ({ state: "applying", canary: null, goesOn: false }));

/** Nothing more of it is done once this has answered: a batch that is under way is waited for. */
export const abortPlan = (world: ChangeWorld, actor: KeyActor, id: string): Promise<Plan | Problem> =>
  change(world, actor, id, "plan.abort", OPEN_STATES, () => ({ state: "aborted" }));

type ChangeWorld = Pick<PlanWorld, "pool" | "plan">;

async function change(
  { pool, plan: planned }: ChangeWorld,
  actor: KeyActor,
  id: string,
  action: Action,
  from: readonly PlanState[],
  to: (plan: Plan) => PlanChange,
): Promise<Plan | Problem> {
  const changed = await inTransaction(pool, async (tx) => {
    const plan = await lockPlan(tx, actor.tenant, id);
    if (!plan) return new Problem("NOT_FOUND", `there is no plan ${id}`);
    const refusal = refusalOf(actor, plan.kind);
    if (refusal) return refusal;
    if (!from.includes(plan.state)) return new Problem("PLAN_NOT_READY", `the plan is ${plan.state}`);
    const next = await changePlan(tx, plan, to(plan));
    const { state, rate, canary, done } = next;
    await writeAudit(tx, actor, { ...deed(action, id), after: { state, rate, canary, done } });
    return next;
  });
  if (!(changed instanceof Problem)) planned(0);
  return changed;
}

const FOR_ADMINISTRATORS: ReadonlyMap<PlanKind, string> = new Map([
  ["purge", "to purge"],
  ["callback-retry", "for callbacks"],
]);

/** To send again is to send; to take off the list what went wrong is not, nor is what is told of it. */
function refusalOf({ scopes }: KeyActor, kind: PlanKind): Problem | undefined {
  const what = FOR_ADMINISTRATORS.get(kind);
  if (what === undefined || scopes.includes("admin")) return undefined;
  return new Problem("FORBIDDEN", `${what}, a key needs the scope admin`);
}

const deed = (action: Action, id: string) => ({ action, object: { kind: "plan", name: id } });
