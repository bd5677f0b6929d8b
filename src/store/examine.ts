// What a person wants to know of a database that something is wrong with. Looks, and changes nothing.

import type { Queryable } from "#store/connection/database.ts";
import { fileOf, knownMigrations } from "#store/connection/migrations.ts";

export type Examined = {
  version: string;
  /** True of a standby. */
  isReadOnly: boolean;
  connections: number;
  mostConnections: number;
};

export async function examineServer(db: Queryable): Promise<Examined> {
  const { rows } = await db.query<Examined>(
    `select current_setting('server_version') as version, pg_is_in_recovery() as "isReadOnly",
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
       current_setting('max_connections')::int as "mostConnections"`,
  );
  return rows[0] as Examined;
}

/** Its clock, in milliseconds. */
export async function readServerClock(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ ms: number }>("select extract(epoch from clock_timestamp())::float8 * 1000 as ms");
  return rows[0]?.ms ?? Number.NaN;
}

export type OpenTransaction = { who: string; state: string; ageMs: number };

/** The oldest first; those that were prepared stay until somebody ends them, whoever they are of. */
export async function findOpenTransactions(db: Queryable, olderThanMs: number): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenTransaction>(
    `select * from (
       select format('process %s of %s%s', pid, usename, coalesce(' (' || nullif(application_name, '') || ')', '')) as who, state,
         extract(epoch from clock_timestamp() - xact_start)::float8 * 1000 as "ageMs"
       from pg_stat_activity
       where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
         and backend_type = 'client backend'
       union all
       select format('prepared %s of %s', gid, owner), 'prepared', extract(epoch from clock_timestamp() - prepared)::float8 * 1000
       from pg_prepared_xacts where database = current_database()
     ) open where "ageMs" > $1 order by "ageMs" desc limit 10`,
    [olderThanMs],
  );
  return rows;
}

export type TableStanding = { name: string; rows: number; deadRows: number; vacuumedAt: Date | null };

/** What a claim walks through. */
const QUEUE_TABLES = ["ready", "later", "claims", "handoffs"];

/** By the server's own statistics: an estimate, which costs nothing however large they are. */
export async function readQueueTables(db: Queryable): Promise<TableStanding[]> {
  const { rows } = await db.query<TableStanding>(
    `select relname as name, n_live_tup::float8 as rows, n_dead_tup::float8 as "deadRows", greatest(last_vacuum, last_autovacuum) as "vacuumedAt"
     from pg_stat_user_tables where schemaname = 'carillon' and relname = any ($1) order by array_position($1, relname::text)`,
    [QUEUE_TABLES],
  );
  return rows;
}

/** Undefined where Carillon has never been at work there; else what is to be applied, and what is newer than we are. */
export async function findPendingMigrations(db: Queryable): Promise<{ pending: string[]; newer: number } | undefined> {
  const found = await db.query<{ there: boolean }>("select to_regclass('carillon.migrations') is not null as there");
  if (!found.rows[0]?.there) return undefined;
  const { rows } = await db.query<{ version: number }>("select version from carillon.migrations");
  const { numbered } = knownMigrations();
  const applied = new Set(rows.map(({ version }) => version));
  const newest = numbered.at(-1)?.version ?? 0;
  return {
    pending: numbered.filter(({ version }) => !applied.has(version)).map(fileOf),
    newer: rows.filter(({ version }) => version > newest).length,
  };
}
