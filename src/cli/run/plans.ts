// carillon dead plan, apply, continue and abort: dead letters sent again, or purged, as was counted and looked over before.

import { setTimeout as sleep } from "node:timers/promises";
import type { Client, DeadLetterFilter, Plan, PlanApplication, PlanRequest } from "#client/client.ts";
import { type Answer, EXIT, Failure, type Run, type World } from "../command.ts";
import { stopSignal } from "../stopping.ts";
import { definedOf, listed, readAll } from "./lines.ts";
import { lasting } from "./times.ts";

const LOOK_MS = 400;

export const makePlan: Run = async ({ options, flags }, world) => {
  const { channel, priority, provider, user, template, outcome, error, cause, since, until, ids, rate } = options;
  const said = { channel, priority, provider, userId: user, templateId: template, outcome, error, cause, since, until };
  const filter = definedOf(said) as DeadLetterFilter;
  if (ids !== undefined && Object.keys(filter).length > 0) {
    throw new Failure("say which by --ids, or by what they have in common, not both", EXIT.usage);
  }
  const { plans } = await world.client();
  const request: PlanRequest = {
    kind: flags.has("purge") ? "purge" : "requeue",
    ...(rate !== undefined && { rate: Number(rate) }),
    ...(ids === undefined ? { filter } : { ids: ids.split(",") }),
  };
  const made = await plans.create(request);
  const plan = await follow(world, plans, made, ["counting"]);
  const next = plan.count === 0 ? [] : ["", `Nothing is done yet: carillon dead apply ${plan.planId}`];
  return { json: plan, text: [...linesOf(plan), ...next] };
};

export const listPlans: Run = async ({ args: [id] }, world) => {
  const { plans } = await world.client();
  if (id !== undefined) return shown(await plans.get(id));
  return listed(await readAll((page) => plans.list(page), MOST_LISTED), (plan) => lineOf(plan));
};

export const applyPlan: Run = async ({ args: [id = ""], options, flags }, world) => {
  const { plans } = await world.client();
  const plan = await plans.get(id);
  if (!flags.has("yes")) await confirm(plan, options.canary, world);
  const { rate, canary, continue: how } = options;
  const application = {
    ...(rate !== undefined && { rate: Number(rate) }),
    ...(canary !== undefined && { canary: Number(canary) }),
    ...(how !== undefined && { continue: how }),
  } as PlanApplication;
  return finish(world, plans, await plans.apply(id, application), flags.has("detach"));
};

export const continuePlan: Run = async ({ args: [id = ""], flags }, world) => {
  const { plans } = await world.client();
  return finish(world, plans, await plans.continue(id), flags.has("detach"));
};

export const abortPlan: Run = async ({ args: [id = ""] }, world) => shown(await (await world.client()).plans.abort(id));

const MOST_LISTED = 200;

async function confirm({ kind, count, estimate }: Plan, canary: string | undefined, world: World): Promise<void> {
  const first = canary === undefined ? "" : `, ${canary} of them first`;
  const cost = kind === "requeue" && estimate.cost > 0 ? ` for about ${estimate.cost}` : "";
  const what = kind === "purge" ? `take ${count} off the list` : `send ${count} again${cost}${first}`;
  const isWanted = await world.confirm(`This will ${what}. Go on? Type yes: `);
  if (isWanted === undefined) throw new Failure(`this would ${what}: say --yes to do it`, EXIT.usage);
  if (!isWanted) throw new Failure("nothing was done", EXIT.failed);
}

async function finish(world: World, plans: Client["plans"], begun: Plan, isDetached: boolean): Promise<Answer> {
  if (isDetached) return shown(begun);
  const plan = await follow(world, plans, begun, ["applying"]);
  const next = plan.state === "waiting" ? ["", `It waits: carillon dead continue ${plan.planId}, or abort`] : [];
  const isWell = plan.state === "done" || plan.state === "waiting";
  return { json: plan, text: [...linesOf(plan), ...next], code: isWell ? EXIT.done : EXIT.failed };
}

/** Until it is in none of these states any more. Whoever leaves before leaves it to go on. */
async function follow(world: World, plans: Client["plans"], begun: Plan, states: readonly string[]): Promise<Plan> {
  const { stopping } = stopSignal();
  const progress = world.progress(begun.state, String);
  let plan = begun;
  try {
    while (states.includes(plan.state)) {
      const { done, remaining } = plan.progress;
      progress.at(plan.state === "counting" ? plan.looked : done, plan.state === "counting" ? 0 : done + remaining);
      await sleep(LOOK_MS, undefined, { signal: stopping });
      plan = await plans.get(plan.planId);
    }
    return plan;
  } catch (cause) {
    if (!stopping.aborted) throw cause;
    const { planId } = plan;
    const left = `the plan goes on without us: carillon dead plans ${planId}, carillon dead abort ${planId}`;
    throw new Failure(left, EXIT.failed, { cause });
  } finally {
    progress.end();
  }
}

const shown = (plan: Plan): Answer => ({ json: plan, text: linesOf(plan) });

const lineOf = ({ planId, kind, state, count, progress, createdAt, madeBy }: Plan): string =>
  [planId, kind, state.padEnd(8), `${progress.done} of ${count}`, `made ${createdAt} by ${madeBy}`].join("  ");

export function linesOf(plan: Plan): string[] {
  const { planId, kind, state, count, looked, truncated, excluded, estimate, progress, canary, error } = plan;
  const more = truncated ? "; there are more, for another plan" : "";
  const lines = [`${planId}  ${kind}  ${state}`, `  ${count}, of ${looked} dead letters looked at${more}`];
  lines.push(...talliesOf("left out", excluded));
  if (kind === "requeue") {
    const unpriced = estimate.unpriced > 0 ? `, and ${estimate.unpriced} of which no price is known` : "";
    lines.push(
      `  about ${estimate.cost}${unpriced}; ${lasting(estimate.seconds * 1_000)} at ${estimate.rate} a second`,
    );
  }
  if (plan.startedAt !== undefined) {
    lines.push(`  ${progress.done} done, ${progress.remaining} to go`, ...talliesOf("passed over", progress.skipped));
  }
  if (canary) {
    const standing = Object.entries(canary.standing).map(([status, n]) => `${n} ${status}`);
    lines.push(`  of the first ${canary.done}: ${standing.join(", ") || "nothing yet"}`);
  }
  if (error !== undefined) lines.push(`  ${error}`);
  return lines;
}

function talliesOf(what: string, tally: { [reason: string]: number }): string[] {
  const parts = Object.entries(tally).map(([reason, n]) => `${n} ${reason}`);
  return parts.length === 0 ? [] : [`  ${what}: ${parts.join(", ")}`];
}
