// Plans for dead letters, and what they have counted.

import type { PlanKind, PlanState, Prices, Tally } from "#domain/plan.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "#store/due.ts";
import type { DeadLetterFilter } from "./dead-letters.ts";

export type Plan = {
  tenant: number;
  id: string;
  kind: PlanKind;
  state: PlanState;
  filter: DeadLetterFilter | null;
  madeBy: string;
  madeAt: Date;
  prices: Prices;
  reached: string | null;
  looked: number;
  counted: number;
  isCut: boolean;
  cost: number;
  unpriced: number;
  excluded: Tally;
  rate: number;
  canary: number | null;
  goesOn: boolean;
  canaryIds: string[];
  page: number;
  place: number;
  done: number;
  skipped: Tally;
  begunAt: Date | null;
  finishedAt: Date | null;
  error: string | null;
};

const COLUMNS = `tenant, id, kind, state, filter, made_by as "madeBy", made_at as "madeAt", prices, reached, looked::float8 as looked,
  counted::float8 as counted, is_cut as "isCut", cost, unpriced::float8 as unpriced, excluded, rate, canary, goes_on as "goesOn",
  canary_ids as "canaryIds", page, place, done::float8 as done, skipped, begun_at as "begunAt", finished_at as "finishedAt", error`;

/** How many are open, but for those that are carried out at once. Whoever else counts them waits until the transaction ends; sends do not. */
export async function countPlansAlone(tx: Queryable, tenant: number): Promise<number> {
  await tx.query("select from carillon.tenants where id = $1 for no key update", [tenant]);
  const { rows } = await tx.query<{ n: number }>(
    "select count(*)::int as n from carillon.plans where tenant = $1 and finished_at is null and kind in ('requeue', 'purge')",
    [tenant],
  );
  return rows[0]?.n ?? 0;
}

export type NewPlan = Pick<Plan, "tenant" | "id" | "kind" | "filter" | "madeBy" | "prices" | "rate"> & {
  ids: readonly string[] | null;
  /** Counting begins below this one, and not with the newest. */
  reached?: string | undefined;
  /** So long it is left to whoever makes it. */
  waitMs: number;
};

export async function insertPlan(tx: Queryable, plan: NewPlan): Promise<Plan> {
  const { tenant, id, kind, filter, ids, reached = null, madeBy, prices, rate, waitMs } = plan;
  const { rows } = await tx.query<Plan>(
    `insert into carillon.plans (tenant, id, kind, filter, ids, reached, made_by, prices, rate, turn_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, carillon.now() + $10 * interval '1 ms') returning ${COLUMNS}`,
    [tenant, id, kind, filter && JSON.stringify(filter), ids, reached, madeBy, JSON.stringify(prices), rate, waitMs],
  );
  return rows[0] as Plan;
}

/** As if it had not been made. */
export async function deletePlan(tx: Queryable, { tenant, id }: Plan): Promise<void> {
  await tx.query("delete from carillon.plans where tenant = $1 and id = $2", [tenant, id]);
}

export async function findPlan(db: Queryable, tenant: number, id: string): Promise<Plan | undefined> {
  const { rows } = await db.query<Plan>(`select ${COLUMNS} from carillon.plans where tenant = $1 and id = $2`, [
    tenant,
    id,
  ]);
  return rows[0];
}

/** The newest first. */
export async function listPlans(
  db: Queryable,
  tenant: number,
  { beforeId, limit }: { beforeId: string | undefined; limit: number },
): Promise<Plan[]> {
  const { rows } = await db.query<Plan>(
    `select ${COLUMNS} from carillon.plans where tenant = $1 and ($2::uuid is null or id < $2) order by id desc limit $3`,
    [tenant, beforeId ?? null, limit],
  );
  return rows;
}

/** Locked until the transaction ends. Whoever has a batch of it in hand is waited for: that takes a moment. */
export async function lockPlan(tx: Queryable, tenant: number, id: string): Promise<Plan | undefined> {
  const { rows } = await tx.query<Plan>(
    `select ${COLUMNS} from carillon.plans where tenant = $1 and id = $2 for update`,
    [tenant, id],
  );
  return rows[0];
}

/** The same of one whose turn has come, unless it is in another process's hand. */
export async function takePlan(tx: Queryable, tenant: number, id: string): Promise<Plan | undefined> {
  const { rows } = await tx.query<Plan>(
    `select ${COLUMNS} from carillon.plans where tenant = $1 and id = $2 and finished_at is null and turn_at <= carillon.now()
     for update skip locked`,
    [tenant, id],
  );
  return rows[0];
}

export const nextPlan = (db: Queryable): Promise<Next> =>
  readNext(db, "plan", "select min(turn_at) from carillon.plans where finished_at is null");

/** One of each tenant whose turn has come, the one that waited longest. */
export async function duePlans(db: Queryable): Promise<{ tenant: number; id: string }[]> {
  const { rows } = await db.query<{ tenant: number; id: string }>(
    `select distinct on (tenant) tenant, id from carillon.plans where finished_at is null and turn_at <= carillon.now()
     order by tenant, turn_at, id`,
  );
  return rows;
}

export type PlanChange = Partial<
  Pick<Plan, "state" | "reached" | "looked" | "counted" | "isCut" | "cost" | "unpriced" | "excluded"> &
    Pick<Plan, "rate" | "canary" | "goesOn" | "canaryIds" | "page" | "place" | "done" | "skipped">
> & { waitMs?: number };

const ENDED = "('done', 'aborted', 'lapsed')";

/** Writes down how far it has come. Once it is over, it no longer says whose it was nor what was looked for, and its pages go. */
export async function changePlan(tx: Queryable, plan: Plan, change: PlanChange): Promise<Plan> {
  const { tenant, id, waitMs = 0, ...next } = { ...plan, ...change };
  const { rows } = await tx.query<Plan>(
    `update carillon.plans set state = $3, reached = $4, looked = $5, counted = $6, is_cut = $7, cost = $8, unpriced = $9, excluded = $10,
       rate = $11, canary = $12, goes_on = $13, canary_ids = $14, page = $15, place = $16, done = $17, skipped = $18,
       ids = case when $3 = 'counting' then ids end, failures = 0, error = null,
       begun_at = case when $3 in ('applying', 'done') then coalesce(begun_at, carillon.now()) else begun_at end,
       filter = case when $3 in ${ENDED} and kind <> 'callback-retry' then filter - 'userId' - 'error' else filter end,
       finished_at = case when $3 in ${ENDED} then carillon.now() end,
       turn_at = carillon.now() + $19 * interval '1 ms'
     where tenant = $1 and id = $2 returning ${COLUMNS}`,
    [
      ...[tenant, id, next.state, next.reached, next.looked, next.counted, next.isCut, next.cost, next.unpriced],
      ...[JSON.stringify(next.excluded), next.rate, next.canary, next.goesOn, next.canaryIds, next.page, next.place],
      ...[next.done, JSON.stringify(next.skipped), waitMs],
    ],
  );
  const changed = rows[0] as Plan;
  if (changed.finishedAt)
    await tx.query("delete from carillon.plan_pages where tenant = $1 and plan = $2", [tenant, id]);
  return changed;
}

/** A batch of it failed: it is tried again later, ever more rarely. */
export async function putOffPlan(db: Queryable, tenant: number, id: string, error: string): Promise<void> {
  await db.query(
    `update carillon.plans set turn_at = carillon.now() + carillon.backoff(failures), failures = failures + 1, error = $3
     where tenant = $1 and id = $2 and finished_at is null`,
    [tenant, id, error],
  );
}

/** The ids that a plan was made for, while it counts. */
export async function findPlannedIds(tx: Queryable, { tenant, id }: Plan): Promise<string[]> {
  const { rows } = await tx.query<{ ids: string[] | null }>(
    "select ids from carillon.plans where tenant = $1 and id = $2",
    [tenant, id],
  );
  return rows[0]?.ids ?? [];
}

export type PlannedItem = { id: string; seq: string };

/** The next pages, from number `page` on. As text without quotes: that is half the work for both ends. */
export async function insertPages(
  tx: Queryable,
  { tenant, id, page }: Plan,
  pages: readonly (readonly PlannedItem[])[],
): Promise<void> {
  if (pages.length === 0) return;
  await tx.query(
    `insert into carillon.plan_pages (tenant, plan, page, ids, seqs)
     select $1, $2, $3::int + p.place - 1, p.ids::uuid[], p.seqs::bigint[] from unnest($4::text[], $5::text[]) with ordinality as p(ids, seqs, place)`,
    [
      ...[tenant, id, page],
      pages.map((items) => `{${items.map((item) => item.id).join()}}`),
      pages.map((items) => `{${items.map((item) => item.seq).join()}}`),
    ],
  );
}

/** So many of a page from a place on, and whether that is all of it; undefined where there is no such page. */
export async function readItems(
  tx: Queryable,
  { tenant, id, page, place }: Plan,
  count: number,
): Promise<{ items: PlannedItem[]; isLast: boolean } | undefined> {
  const { rows } = await tx.query<{ ids: string[]; seqs: string[]; size: number }>(
    `select ids[$4 + 1:$4 + $5] as ids, seqs[$4 + 1:$4 + $5]::text[] as seqs, cardinality(ids) as size
     from carillon.plan_pages where tenant = $1 and plan = $2 and page = $3`,
    [tenant, id, page, place, count],
  );
  const [found] = rows;
  if (!found) return undefined;
  const items = found.ids.map((item, n) => ({ id: item, seq: found.seqs[n] ?? "" }));
  return { items, isLast: place + items.length >= found.size };
}

export async function deletePage(tx: Queryable, { tenant, id, page }: Plan): Promise<void> {
  await tx.query("delete from carillon.plan_pages where tenant = $1 and plan = $2 and page = $3", [tenant, id, page]);
}

/** How these stand, by status. */
export async function countStanding(
  db: Queryable,
  tenant: number,
  ids: readonly string[],
): Promise<{ [status: string]: number }> {
  const { rows } = await db.query<{ status: string; n: number }>(
    "select status, count(*)::int as n from carillon.records where tenant = $1 and id = any ($2::uuid[]) group by status",
    [tenant, ids],
  );
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]));
}

/** A person is forgotten: no plan says any more that it was about them. One that still counts by them ends. */
export async function forgetUserInPlans(tx: Queryable, tenant: number, userId: string): Promise<void> {
  await tx.query(
    `with about as (
       update carillon.plans set filter = filter - 'userId' - 'error',
         state = case when state = 'counting' then 'aborted' else state end,
         finished_at = case when state = 'counting' then carillon.now() end
       where tenant = $1 and finished_at is null and filter ->> 'userId' = $2 returning id, finished_at
     )
     delete from carillon.plan_pages where tenant = $1 and plan in (select id from about where finished_at is not null)`,
    [tenant, userId],
  );
}

/** Plans that were over before the retention reaches back to. */
export async function forgetPlans(db: Queryable, days: number, most: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.plans where (tenant, id) in (
       select tenant, id from carillon.plans where finished_at <= carillon.now() - $1 * interval '1 day' limit $2)`,
    [days, most],
  );
  return rowCount ?? 0;
}

/** Takes dead letters off the list; answers with those that were on it. */
export async function purge(
  tx: Queryable,
  tenant: number,
  ids: readonly string[],
  plan: string,
): Promise<readonly string[]> {
  const { rows } = await tx.query<{ id: string }>("select carillon.purge($1, $2, $3) as id", [tenant, ids, plan]);
  return rows.map(({ id }) => id);
}
