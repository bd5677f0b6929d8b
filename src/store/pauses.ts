// What is paused: a row for each. One whose end has come counts no more, whether its row is still there or not.

import type { PauseKind } from "#domain/pause.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "./due.ts";

/** A tenant by its name; a provider by the account with it, which has an `@` where it is a tenant's own. */
export type PauseOf = { kind: PauseKind; name: string };
export type PauseRow = PauseOf & {
  /** Of a provider: the account. */
  account: string | null;
  /** Of an account: the tenant whose own it is. Then `name` is that of the provider. */
  owner: string | null;
  reason: string;
  pausedAt: Date;
  until: Date | null;
  /** The key that it was paused with. */
  pausedBy: string | null;
};

const COUNTS = "(p.until is null or p.until > carillon.now())";
const COLUMNS = `p.kind, case p.kind when 'provider' then p.name end as account, split_part(p.name, '@', 1) as name,
  (select t.name from carillon.tenants t where t.id = nullif(split_part(p.name, '@', 2), '')::integer) as owner,
  p.reason, p.paused_at as "pausedAt", p.until, p.paused_by as "pausedBy"`;

/** Of an account. The last word on reason and end counts. */
export async function putPause(
  db: Queryable,
  { kind, name }: PauseOf,
  { reason, until, by }: { reason: string; until?: Date; by: string },
): Promise<void> {
  await db.query(
    `insert into carillon.pauses (kind, name, reason, until, paused_by) values ($1, $2, $3, $4, $5)
     on conflict (kind, name) do update set reason = excluded.reason, until = excluded.until, paused_by = excluded.paused_by`,
    [kind, name, reason, until ?? null, by],
  );
}

export async function findPause(db: Queryable, { kind, name }: PauseOf): Promise<PauseRow | undefined> {
  const { rows } = await db.query<PauseRow>(
    `select ${COLUMNS} from carillon.pauses p where p.kind = $1 and p.name = $2 and ${COUNTS}`,
    [kind, name],
  );
  return rows[0];
}

/** Whether it is paused, and not with a key of that tenant. */
export async function isPausedByOthers(db: Queryable, { kind, name }: PauseOf, tenant: number): Promise<boolean> {
  const { rows } = await db.query(
    `select from carillon.pauses p where p.kind = $1 and p.name = $2 and ${COUNTS}
       and not exists (select from carillon.keys k where k.id = p.paused_by and k.tenant = $3)`,
    [kind, name, tenant],
  );
  return rows.length > 0;
}

export async function deletePause(db: Queryable, { kind, name }: PauseOf): Promise<void> {
  await db.query("delete from carillon.pauses where kind = $1 and name = $2", [kind, name]);
}

/** Those whose end has come, each with whose it was: a tenant's number, or null where it was everybody's. */
export async function deletePastPauses(db: Queryable): Promise<(PauseOf & EndedPause)[]> {
  const { rows } = await db.query<PauseOf & EndedPause>(
    `delete from carillon.pauses p where until <= carillon.now()
     returning p.kind, p.name, p.reason, p.until, case p.kind
       when 'tenant' then (select t.id from carillon.tenants t where t.name = p.name)
       when 'provider' then nullif(split_part(p.name, '@', 2), '')::integer end as tenant`,
  );
  return rows;
}
type EndedPause = Pick<PauseRow, "reason" | "until"> & { tenant: number | null };

/** The longest first. */
export async function listPauses(db: Queryable): Promise<PauseRow[]> {
  const { rows } = await db.query<PauseRow>({
    name: "carillon-pauses",
    text: `select ${COLUMNS} from carillon.pauses p where ${COUNTS} order by p.paused_at, p.kind, p.name`,
  });
  return rows;
}

/** For workers: tenants by their numbers, and how long each lasts from now. */
export async function readPaused(db: Queryable): Promise<{ kind: PauseKind; name: string; leftMs: number | null }[]> {
  const { rows } = await db.query<{ kind: PauseKind; name: string; leftMs: number | null }>({
    name: "carillon-paused",
    text: `select p.kind, case p.kind when 'tenant' then t.id::text else p.name end as name,
        date_part('epoch', p.until - carillon.now()) * 1000 as "leftMs"
      from carillon.pauses p left join carillon.tenants t on p.kind = 'tenant' and t.name = p.name
      where ${COUNTS}`,
  });
  return rows;
}

/** The next that ends by itself. */
export const nextPauseEnd = (db: Queryable): Promise<Next> =>
  readNext(db, "pause-end", "select min(until) from carillon.pauses");
