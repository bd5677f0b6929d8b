// Who asked to be forgotten, and how far that has come.

import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "./due.ts";

export const PHASES = [
  ...["broadcasts", "schedules", "reminders", "notifications", "inbox", "devices", "callbacks", "done"],
] as const;
export type Phase = (typeof PHASES)[number];

export type Deletion = {
  phase: Phase;
  requestedAt: Date;
  finishedAt: Date | null;
  /** How many notifications were blanked so far. */
  blanked: number;
};

const COLUMNS = `phase, requested_at as "requestedAt", finished_at as "finishedAt", blanked::float8 as blanked`;

/** One that is under way goes on; after one that is done another begins. */
export async function putDeletion(
  tx: Queryable,
  tenant: number,
  userId: string,
): Promise<Deletion & { isNew: boolean }> {
  // What comes back from the archive meanwhile is either there before this begins, or sees it.
  await tx.query("select pg_advisory_xact_lock_shared(hashtextextended('carillon.deletions', 0))");
  const { rows } = await tx.query<Deletion>(
    `insert into carillon.deletions as d (tenant, pseudonym, user_id) values ($1, carillon.pseudonym($1, $2), $2)
     on conflict (tenant, pseudonym) do update set user_id = $2, requested_at = carillon.now(), requested_xid = pg_current_xact_id(),
       phase = default, reached = '', is_clean = true, made_since = '{}', blanked = 0, turn_at = carillon.now(), failures = 0,
       finished_at = null where d.finished_at is not null
     returning ${COLUMNS}`,
    [tenant, userId],
  );
  const [made] = rows;
  if (made) return { ...made, isNew: true };
  return { ...((await findDeletion(tx, tenant, userId)) as Deletion), isNew: false };
}

export async function findDeletion(db: Queryable, tenant: number, userId: string): Promise<Deletion | undefined> {
  const { rows } = await db.query<Deletion>(
    `select ${COLUMNS} from carillon.deletions where tenant = $1 and pseudonym = carillon.pseudonym($1, $2)`,
    [tenant, userId],
  );
  return rows[0];
}

export const nextDeletion = (db: Queryable): Promise<Next> =>
  readNext(db, "deletion", "select min(turn_at) from carillon.deletions where finished_at is null");

/** One of each tenant whose turn has come, the one that waited longest. Of a tenant with very many, one is looked at. */
export async function dueDeletions(db: Queryable): Promise<{ tenant: number; pseudonym: string }[]> {
  const { rows } = await db.query<{ tenant: number; pseudonym: string }>(
    `with recursive whose(tenant) as (
       select min(tenant) from carillon.deletions where finished_at is null
       union all
       select (select min(d.tenant) from carillon.deletions d where d.finished_at is null and d.tenant > h.tenant)
       from whose h where h.tenant is not null
     )
     select h.tenant, d.pseudonym from whose h cross join lateral (
       select d.pseudonym from carillon.deletions d
       where d.tenant = h.tenant and d.finished_at is null and d.turn_at <= carillon.now() order by d.turn_at limit 1
     ) d`,
  );
  return rows;
}

export type DeletionJob = {
  tenant: number;
  pseudonym: string;
  userId: string;
  requestedAt: Date;
  phase: Phase;
  reached: string;
  isClean: boolean;
  madeSince: string[];
  blanked: number;
  /** Everything that was open when it was asked for has ended. */
  isSettled: boolean;
};

/** Locked, unless it is done or in another scheduler's hand. */
export async function takeDeletion(tx: Queryable, tenant: number, pseudonym: string): Promise<DeletionJob | undefined> {
  const { rows } = await tx.query<DeletionJob>(
    `select tenant, pseudonym, user_id as "userId", requested_at as "requestedAt", phase, reached, is_clean as "isClean",
       made_since as "madeSince", blanked::float8 as blanked, pg_snapshot_xmin(pg_current_snapshot()) > requested_xid as "isSettled"
     from carillon.deletions where tenant = $1 and pseudonym = $2 and finished_at is null and turn_at <= carillon.now()
     for update skip locked`,
    [tenant, pseudonym],
  );
  return rows[0];
}

/** How far it has come, and how long its next turn can wait. */
export type Progress = Partial<Pick<DeletionJob, "phase" | "reached" | "isClean" | "madeSince" | "blanked">> & {
  waitMs?: number;
};

export async function advanceDeletion(tx: Queryable, job: DeletionJob, progress: Progress): Promise<void> {
  const { phase, reached, isClean, madeSince, blanked, waitMs = 0 } = { ...job, ...progress };
  await tx.query(
    `update carillon.deletions set phase = $3, reached = $4, is_clean = $5, made_since = $6, blanked = $7, failures = 0,
       turn_at = carillon.now() + $8 * interval '1 ms', user_id = case when $3 <> 'done' then user_id end,
       finished_at = case when $3 = 'done' then carillon.now() end
     where tenant = $1 and pseudonym = $2`,
    [job.tenant, job.pseudonym, phase, reached, isClean, madeSince, blanked, waitMs],
  );
}

/** A batch of it failed: it is tried again later, ever more rarely. */
export async function putOffDeletion(db: Queryable, tenant: number, pseudonym: string): Promise<void> {
  await db.query(
    `update carillon.deletions set turn_at = carillon.now() + carillon.backoff(failures), failures = failures + 1
     where tenant = $1 and pseudonym = $2`,
    [tenant, pseudonym],
  );
}
