// /v1/plans: dead letters sent again, or taken off the list, as was looked over before.

import { Type } from "typebox";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import {
  MOST_A_SECOND,
  PLAN_KINDS,
  PLAN_STATES,
  type PlanKind,
  REASONS,
  REVIEWED_KINDS,
  type Reason,
  totalOf,
} from "#domain/plan.ts";
import { priorityOf } from "#domain/priority.ts";
import { Problem } from "#domain/problems.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { EndpointId, Id, pageBody, strictOneOf } from "#http/core/schemas.ts";
import type { DeadLetterFilter } from "#record/dead-letters.ts";
import { countStanding, findPlan, listPlans, type Plan } from "#record/plans.ts";
import { abortPlan, applyPlan, continuePlan, makePlan, type PlanWorld } from "#steps/manage/plans.ts";
import { DeadLetterFilters, filterOf } from "./dead-letters.ts";

const tag = "Plans";
const RATE = 100;
const MOST_IDS = 10_000;
const MOST_CANARIES = 1_000;
/** So many ids, quoted and with commas. */
const BODY_BYTES = 512 * 1024;

const Rate = Type.Integer({ minimum: 1, maximum: MOST_A_SECOND, default: RATE, description: "So many a second" });
const Reasons = Type.Object(
  Object.fromEntries(REASONS.map((reason) => [reason, Type.Optional(Type.Integer())])) as {
    [reason in Reason]: ReturnType<typeof Type.Optional<ReturnType<typeof Type.Integer>>>;
  },
);
const Count = Type.Integer({ minimum: 0 });

const PlanBody = Type.Object({
  planId: Id,
  kind: { ...oneOf(PLAN_KINDS), description: "The last two are requeues that were not looked over" },
  state: oneOf(PLAN_STATES),
  filter: Type.Optional(
    Type.Object({ ...DeadLetterFilters, endpoint: Type.Optional(EndpointId), type: Type.Optional(Type.String()) }),
  ),
  madeBy: Type.String(),
  createdAt: Instant,
  count: { ...Count, description: "How many it is for. Nothing else is touched." },
  truncated: Type.Boolean({ description: "There are more than a plan may hold" }),
  looked: { ...Count, description: "How many failures were looked at" },
  excluded: Reasons,
  estimate: Type.Object({
    cost: Type.Number({ description: "Of sending all of them, in US dollars" }),
    unpriced: { ...Count, description: "Of how many nobody knows what they cost" },
    seconds: Type.Number({ description: "How long it takes at this rate" }),
    rate: Type.Integer(),
  }),
  progress: Type.Object({ done: Count, skipped: Reasons, remaining: Count }),
  canary: Type.Optional(
    Type.Object({
      done: Count,
      standing: Type.Object({}, { additionalProperties: Type.Integer(), description: "How many have which status" }),
    }),
  ),
  startedAt: Type.Optional(Instant),
  finishedAt: Type.Optional(Instant),
  error: Type.Optional(Type.String({ description: "Why the last batch failed. It is tried again." })),
});
const params = strict({ id: Id });
const answers = (description: string) => ({ 200: { description, schema: PlanBody } });

type PlanOptions = PlanWorld & { large: PlanWorld["pool"] };

export const planRoutes = (options: PlanOptions): Route[] => [
  make({ ...options, pool: options.large }),
  list(options),
  read(options),
  apply(options),
  goOn(options),
  abort(options),
];

const make = (world: PlanWorld): Route =>
  route({
    method: "POST",
    path: "/v1/plans",
    summary: "Plan to send dead letters again, or to take them off the list",
    detail:
      "Nothing is done yet: the plan says how many there are, what sending them costs by estimate and how long it takes, and what is left out and why. " +
      "Very many are counted in the background: the state is `counting` until it is `ready`. To purge needs the scope `admin`.",
    tag,
    scope: "send",
    turn: "large",
    bodyLimit: BODY_BYTES,
    body: strictOneOf(["filter", "ids"], {
      kind: oneOf(REVIEWED_KINDS),
      filter: Type.Optional(strict(DeadLetterFilters)),
      ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MOST_IDS })),
      rate: Type.Optional(Rate),
    }),
    answers: { 201: { description: "To be looked over", schema: PlanBody } },
    async handle({ body: { kind, filter, ids, rate = RATE }, actor }) {
      const which = ids ? { ids } : { filter: filterOf(filter ?? {}) };
      const plan = orThrow(await makePlan(world, actor, { kind, rate, ...which }));
      return { status: 201, body: bodyOf(plan), headers: { location: `/v1/plans/${plan.id}` } };
    },
  });

const list = ({ pool }: PlanOptions): Route =>
  route({
    method: "GET",
    path: "/v1/plans",
    summary: "List plans, the newest first",
    tag,
    scope: "read",
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: { 200: { description: "One page", schema: pageBody(PlanBody) } },
    async handle({ query: { limit = 50, cursor }, actor }) {
      const beforeId = cursor === undefined ? undefined : idOfCursor(cursor);
      const found = await listPlans(pool, actor.tenant, { beforeId, limit: limit + 1 });
      const plans = found.slice(0, limit);
      const last = found.length > limit ? plans.at(-1) : undefined;
      return {
        status: 200,
        body: { data: plans.map((plan) => bodyOf(plan)), nextCursor: last ? cursorOf(last.id) : null },
      };
    },
  });

const read = ({ pool }: PlanOptions): Route =>
  route({
    method: "GET",
    path: "/v1/plans/:id",
    summary: "Read a plan: what was counted, and how far it has come",
    detail: "`canary.standing` tells how those fared that went first.",
    tag,
    scope: "read",
    params,
    answers: answers("The plan"),
    async handle({ params: { id }, actor }) {
      const plan = await findPlan(pool, actor.tenant, id);
      if (!plan) throw new Problem("NOT_FOUND", `there is no plan ${id}`);
      const { canaryIds } = plan;
      const standing = canaryIds.length > 0 ? await countStanding(pool, actor.tenant, canaryIds) : undefined;
      return { status: 200, body: bodyOf(plan, standing) };
    },
  });

const apply = (world: PlanOptions): Route =>
  route({
    method: "POST",
    path: "/v1/plans/:id/apply",
    summary: "Carry out a plan",
    detail:
      "It touches what was counted and nothing else, the newest first; what has changed since is passed over and told. With a `canary` so many go first, and the plan " +
      "is `waiting` until somebody lets it go on; with `continue: sent` it goes on by itself when all of them were sent.",
    tag,
    scope: "send",
    params,
    isBodyOptional: true,
    body: strict({
      rate: Type.Optional(Rate),
      canary: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_CANARIES })),
      continue: Type.Optional(oneOf(["confirmed", "sent"])),
    }),
    answers: answers("It is under way"),
    async handle({ params: { id }, body: { rate, canary, continue: when }, actor }) {
      const plan = orThrow(await applyPlan(world, actor, id, { rate, canary, goesOn: when === "sent" }));
      return { status: 200, body: bodyOf(plan) };
    },
  });

const goOn = (world: PlanOptions): Route =>
  route({
    method: "POST",
    path: "/v1/plans/:id/continue",
    summary: "Let a plan go on after its canaries",
    tag,
    scope: "send",
    params,
    answers: answers("It is under way"),
    handle: async ({ params: { id }, actor }) => ({
      status: 200,
      body: bodyOf(orThrow(await continuePlan(world, actor, id))),
    }),
  });

const abort = (world: PlanOptions): Route =>
  route({
    method: "POST",
    path: "/v1/plans/:id/abort",
    summary: "Abort a plan",
    detail: "Once this has answered, nothing more of it is done. What was done stays done.",
    tag,
    scope: "send",
    params,
    answers: answers("It is over"),
    handle: async ({ params: { id }, actor }) => ({
      status: 200,
      body: bodyOf(orThrow(await abortPlan(world, actor, id))),
    }),
  });

function bodyOf(plan: Plan, standing?: { [status: string]: number }) {
  const { id, kind, state, filter, madeBy, madeAt, counted, isCut, looked, excluded, cost, unpriced, rate } = plan;
  const { done, skipped, canaryIds, begunAt, finishedAt, error } = plan;
  return {
    planId: id,
    kind,
    state,
    ...(filter && { filter: shown(kind, filter) }),
    madeBy,
    createdAt: madeAt.toISOString(),
    count: counted,
    truncated: isCut,
    looked,
    excluded,
    estimate: { cost: rounded(cost), unpriced, seconds: counted / rate, rate },
    progress: { done, skipped, remaining: counted - done - totalOf(skipped) },
    ...(standing && { canary: { done: canaryIds.length, standing } }),
    ...(begunAt && { startedAt: begunAt.toISOString() }),
    ...(finishedAt && { finishedAt: finishedAt.toISOString() }),
    ...(error !== null && { error }),
  };
}

/** In the record a callback's user is its endpoint. */
const shown = (kind: PlanKind, { rank, userId, ...rest }: DeadLetterFilter) => ({
  ...rest,
  ...(rank !== undefined && { priority: priorityOf(rank) }),
  ...(userId !== undefined && { [kind === "callback-retry" ? "endpoint" : "userId"]: userId }),
});

/** A hundredth of a cent. */
const rounded = (dollars: number): number => Math.round(dollars * 10_000) / 10_000;
