// What the database keeps of weeks on their way into the archive, and of those that came back. Statements only; who calls them when, says
// src/archive.

import type { Queryable } from "#store/connection/database.ts";

export type Week = {
  week: string;
  /** What the archive knows it by. */
  name: string;
  state: "begun" | "writing" | "written" | "restored";
  begunAt: Date;
};
/** The key of a notification: rows are read in this order. */
export type Place = { tenant: number; id: string };
/** Lines of the archive, and whose they are; `ids` is empty where nothing was left. */
export type Page = { lines: string; ids: string[]; tenants: number[]; seqs: string[]; events: number };
export type LatePage = Page & { week: string };

/** Twice, from nothing to writing: what changes is noted first, then what waits. Goes on with what was begun under another name. */
export async function beginArchive(db: Queryable, week: string, name: string): Promise<Week> {
  const { rows } = await db.query<Week>(
    `select week, name, state, begun_at as "begunAt" from carillon.begin_archive($1, $2)`,
    [week, name],
  );
  return rows[0] as Week;
}

export async function readWeekPage(
  db: Queryable,
  week: string,
  after: Place,
  most: number,
  mostBytes: number,
): Promise<Page> {
  const { rows } = await db.query<Page>(
    "select lines, ids, tenants, events from carillon.archive_week_page($1, $2, $3, $4, $5)",
    [week, after.tenant, after.id, most, mostBytes],
  );
  return rows[0] as Page;
}

/** The next of what is over in that partition, all of one week; undefined where nothing is. */
export async function readLatePage(
  db: Queryable,
  partition: string,
  before: Date,
  most: number,
  mostBytes: number,
): Promise<LatePage | undefined> {
  const { rows } = await db.query<LatePage | { week: null }>(
    "select week, lines, ids, tenants, seqs, events from carillon.archive_late_page($1, $2, $3, $4)",
    [partition, before, most, mostBytes],
  );
  const page = rows[0];
  return page && page.week !== null ? page : undefined;
}

/** Answers with how many; what has changed since it was read stays. */
export async function deleteArchived(db: Queryable, partition: string, page: LatePage): Promise<number> {
  const { rows } = await db.query<{ n: number }>("select carillon.delete_archived($1, $2, $3, $4) as n", [
    partition,
    page.ids,
    page.tenants,
    page.seqs,
  ]);
  return rows[0]?.n ?? 0;
}

/** One more part is in the archive; false where somebody else has written it meanwhile, or the week is gone. */
export async function notePart<Part>(
  db: Queryable,
  week: Week,
  number: number,
  last: Place,
  part: Part,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into carillon.archive_parts (week, number, last_tenant, last_id, part)
     select w.week, $3, $4, $5, $6 from carillon.archive_weeks w where w.week = $1 and w.name = $2 and w.state = 'writing'
     on conflict do nothing`,
    [week.week, week.name, number, last.tenant, last.id, JSON.stringify(part)],
  );
  return rowCount === 1;
}

export async function listParts<Part>(db: Queryable, week: string): Promise<{ part: Part; last: Place }[]> {
  const { rows } = await db.query<{ part: Part; tenant: number; id: string }>(
    `select part, last_tenant as tenant, last_id as id from carillon.archive_parts where week = $1 order by number`,
    [week],
  );
  return rows.map(({ part, tenant, id }) => ({ part, last: { tenant, id } }));
}

/** Everything was read back: it may be dropped. In the audit log as well. */
export async function noteWritten(
  db: Queryable,
  { week, name }: Week,
  counts: { notifications: number; events: number },
): Promise<void> {
  await db.query(
    `with written as (
       update carillon.archive_weeks set state = 'written' where week = $1 and name = $2 and state = 'writing' returning name
     )
     select a.* from written w, lateral carillon.write_audit(json_build_object('actorKind', 'process', 'actor', 'keeper',
       'action', 'archive.write', 'objectKind', 'archive', 'objectName', w.name, 'after', $3::json)) a`,
    [week, name, JSON.stringify(counts)],
  );
}

/** What the archive has of it is of no use: it is written anew, under another name. */
export async function forgetArchive(db: Queryable, { week, name }: Week): Promise<void> {
  await db.query("delete from carillon.archive_weeks where week = $1 and name = $2 and state = 'writing'", [
    week,
    name,
  ]);
}

export type Origin = { schema: number; tenants: { [number: string]: string } };

/** What lines need to be understood elsewhere: the newest migration, and whose the numbers of tenants are between these two. */
export async function readOrigin(db: Queryable, first: number, last: number): Promise<Origin> {
  const { rows } = await db.query<Origin>(
    `select (select max(version) from carillon.migrations) as schema,
       coalesce((select json_object_agg(id, name) from carillon.tenants where id between $1 and $2), '{}') as tenants`,
    [first, last],
  );
  return rows[0] as Origin;
}

export type Trouble = { parts: number; since: Date | null };

export async function noteTrouble(db: Queryable, part: string, reason: string): Promise<void> {
  await db.query(
    `insert into carillon.archive_trouble (part, reason) values ($1, $2)
     on conflict (part) do update set reason = excluded.reason`,
    [part, reason],
  );
}

export async function endTrouble(db: Queryable): Promise<void> {
  await db.query("delete from carillon.archive_trouble");
}

/** How much waits for an archive that is away, and since when. */
export async function readTrouble(db: Queryable): Promise<Trouble> {
  const { rows } = await db.query<Trouble>(
    "select count(*)::int as parts, min(since) as since from carillon.archive_trouble",
  );
  return rows[0] ?? { parts: 0, since: null };
}

/** Keeps replicas of the release before, which know no archive, from dropping what has not been archived. */
export async function requireArchive(db: Queryable, isRequired: boolean): Promise<void> {
  await db.query("update carillon.archiving set is_required = $1 where is_required <> $1", [isRequired]);
}

/** False where the week is in the record anyway. */
export async function beginRestore(db: Queryable, week: string, name: string, days: number): Promise<boolean> {
  const { rows } = await db.query<{ begun: boolean }>("select carillon.begin_restore($1, $2, $3) as begun", [
    week,
    name,
    days,
  ]);
  return rows[0]?.begun ?? false;
}

/** How many came back; were left out, as they are about somebody who was forgotten since; and as their tenants are not here. */
export type Restored = { restored: number; forgotten: number; foreign: number };

/** `tenants` leads from their numbers in the archive to those of today. */
export async function restoreLines(
  db: Queryable,
  week: string,
  lines: readonly string[],
  tenants: { [number: string]: number },
): Promise<Restored> {
  const { rows } = await db.query<Restored>(
    `select restored, forgotten, foreign_ones as "foreign" from carillon.restore_lines($1, $2, $3)`,
    [week, `[${lines.join(",")}]`, JSON.stringify(tenants)],
  );
  return rows[0] as Restored;
}

export async function findTenantNumbers(db: Queryable, names: readonly string[]): Promise<{ [name: string]: number }> {
  const { rows } = await db.query<{ name: string; id: number }>(
    "select name, id from carillon.tenants where name = any ($1)",
    [names],
  );
  return Object.fromEntries(rows.map(({ name, id }) => [name, id]));
}
