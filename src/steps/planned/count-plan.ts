// Counts what a plan is for, from the newest dead letter on: so many failures are looked at in a transaction, which also notes how far it came.
//
// What is counted is written down, a thousand a row. So a plan does what was looked over and nothing else, whatever fails meanwhile.

import { addTo, priceOf, type Reason } from "#domain/plan.ts";
import { type Judged, judgeFailed, judgeThese } from "#record/judged.ts";
import {
  changePlan,
  findPlannedIds,
  insertPages,
  type Plan,
  type PlanChange,
  type PlannedItem,
} from "#record/plans.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Looked at in one transaction: a fifth of a second. */
const LOOKED = 10_000;
export const PAGE = 1_000;
/** 24 MB of ids. */
export const MOST_COUNTED = 1_000_000;
/** A plan that nobody applies, or that nobody lets go on, is over after a day: what it was counted for is another matter then. */
export const LAPSES_MS = 86_400_000;

/** `waitMs`: how long others leave it to whoever counts now; `most`: so many it may hold; `lookAt`: so many failures at once. */
export type Counting = { waitMs: number; most?: number; lookAt?: number };

export async function countSome(
  tx: Queryable,
  plan: Plan,
  { waitMs, most = MOST_COUNTED, lookAt = LOOKED }: Counting,
): Promise<Plan> {
  const { judged, looked, nextId } = await lookOn(tx, plan, lookAt);
  const room = most - plan.counted;
  const all = judged.filter(({ reason }) => reason === null);
  const taken = all.slice(0, room);
  const isCut = taken.length < all.length || (taken.length === room && nextId !== undefined);
  const last = isCut ? taken.at(-1) : undefined;
  // What comes after the last is another plan's.
  const seen = last ? judged.slice(0, judged.indexOf(last)) : judged;
  await keep(tx, plan, taken.map(itemOf));
  const isOver = isCut || nextId === undefined;
  const change: PlanChange = {
    state: isOver ? "ready" : "counting",
    reached: last?.id ?? nextId ?? null,
    looked: plan.looked + looked,
    counted: plan.counted + taken.length,
    isCut,
    ...costOf(plan, taken),
    excluded: addTo(
      plan.excluded,
      seen.flatMap(({ reason }): Reason[] => (reason === null ? [] : [reason])),
    ),
    // Until it is applied, this tells which page comes next.
    page: plan.page + Math.ceil(taken.length / PAGE),
    waitMs: isOver ? LAPSES_MS : waitMs,
  };
  return changePlan(tx, plan, isOver ? { ...change, page: 0 } : change);
}

async function lookOn(tx: Queryable, plan: Plan, most: number) {
  const { filter, reached } = plan;
  if (filter) return judgeFailed(tx, plan, filter, { beforeId: reached, most });
  const ids = uniqueOf(await findPlannedIds(tx, plan));
  return { judged: await judgeThese(tx, plan, ids), looked: ids.length, nextId: undefined };
}

/** The newest first. */
export const uniqueOf = (ids: readonly string[]): string[] =>
  [...new Set(ids.map((id) => id.toLowerCase()))].sort().reverse();

async function keep(tx: Queryable, plan: Plan, items: readonly PlannedItem[]): Promise<void> {
  const pages = Array.from({ length: Math.ceil(items.length / PAGE) }, (_, n) => items.slice(n * PAGE, (n + 1) * PAGE));
  await insertPages(tx, plan, pages);
}

/** What is counted has failed, which an event says. */
const itemOf = ({ id, seq }: Judged): PlannedItem => ({ id, seq: seq ?? "0" });

function costOf(plan: Plan, taken: readonly Judged[]): Pick<Plan, "cost" | "unpriced"> {
  let { cost, unpriced } = plan;
  if (plan.kind === "purge" || plan.kind === "callback-retry") return { cost, unpriced };
  for (const { channel, provider } of taken) {
    const price = priceOf(plan.prices, channel ?? "", provider);
    if (price === undefined) unpriced += 1;
    else cost += price;
  }
  return { cost, unpriced };
}
