// Brings the schema `carillon` up to the version this code knows: numbered files, forward only.
//
// All pending files run in one transaction under a lock of the database, so that replicas may
// start together, and a failure leaves the schema as it was. A new database gets the whole schema at once.
//
// Replicas of the release before are at work meanwhile. Locks that were taken table by table, as the files come to them, would
// deadlock with everybody who takes the same ones in another order: so all tables are locked first, before anything is changed.
//
// The table carillon.migrations keeps a checksum of each file. One that was edited after it was applied is refused: what it says
// now is not what this database has.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { isPassing } from "./database.ts";
import {
  checksumOf,
  fileOf,
  knownMigrations,
  type Migration,
  MigrationError,
  type Migrations,
  refuseEdited,
} from "./migrations.ts";
import { leadingUrl } from "./servers.ts";

/** Any number will do as long as nobody else locks it: "carillon" in ASCII. */
const LOCK = "7161126405839445870";
const OLDEST_POSTGRES = 14;
/**
 * Whoever waits for the lock of a table has everybody else wait behind it: not for longer than this, and then again. After a second
 * PostgreSQL looks for deadlocks and ends one of those in it, which may be somebody's own transaction: before that, we
 * are the one to give up. A vacuum gives way after that second only: hence the last two.
 */
const PATIENCE_MS = [...Array<number>(20).fill(100), ...Array<number>(6).fill(500), 2_500, 2_500];
const BETWEEN_MS = 50;
/**
 * What most statements come to last, in about the order in which they do; there is no order that all of them keep, so under load it takes
 * a few tries. `tenants` is the first of all: carillon.send() begins there, in transactions that keep what they have locked.
 */
const LOCKED_LAST = ["records", "notifications", "claims", "events", "receipts", "schedule", "suppressions"];

/** Connects and looks whether the server will do, without a change. */
export const inspectServer = (url: string): Promise<void> => withClient(url, checkServer);

/** Returns the names of what it applied; none when the schema was up to date. */
export async function migrate(url: string, known = knownMigrations()): Promise<string[]> {
  refuseEdited(known);
  let inTheWay: unknown;
  for (const patienceMs of PATIENCE_MS) {
    try {
      return await withClient(url, (client) => applyAll(client, known, patienceMs));
    } catch (error) {
      if (!isInTheWay(error)) throw error;
      inTheWay = error;
    }
    await sleep(BETWEEN_MS);
  }
  const words =
    "something holds a table that has to be changed, such as a backup or a long query. Nothing was changed. " +
    "End it, or start again when it is over";
  throw new MigrationError(words, { cause: inTheWay });
}

/** Also of a statement that has taken too long. */
const isInTheWay = (error: unknown): boolean =>
  isPassing(error) || (error instanceof pg.DatabaseError && error.code === "57014");

async function applyAll(client: pg.Client, known: Migrations, patienceMs: number): Promise<string[]> {
  await checkServer(client);
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock($1)", [LOCK]);
  const applied = await applyPending(client, known, patienceMs);
  await client.query("commit");
  return applied;
}

async function withClient<Value>(url: string, use: (client: pg.Client) => Promise<Value>): Promise<Value> {
  const client = new pg.Client({
    connectionString: await leadingUrl(url),
    application_name: "carillon migrate",
    connectionTimeoutMillis: 5_000,
  });
  // Errors reach us through the query under way; without a listener they would end the process as well.
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; encoding: string }>(
    `select current_setting('server_version_num')::int / 10000 as version, current_setting('server_encoding') as encoding`,
  );
  const [server] = rows;
  if (!server || server.version < OLDEST_POSTGRES) {
    throw new MigrationError(`Carillon needs PostgreSQL ${OLDEST_POSTGRES} or newer; this is ${server?.version}`);
  }
  if (server.encoding !== "UTF8") {
    throw new MigrationError(`Carillon needs a database in UTF8; this one is in ${server.encoding}`);
  }
}

type Applied = { version: number; name: string; checksum: string | null };

async function applyPending(
  client: pg.Client,
  { numbered, whole, frozen }: Migrations,
  patienceMs: number,
): Promise<string[]> {
  const applied = await readApplied(client);
  refuseOthers(applied, numbered, frozen);
  if (applied.length === numbered.length && applied.every(({ checksum }) => checksum !== null)) return [];
  await lockTables(client, patienceMs);
  const bare = applied.filter(({ checksum }) => checksum === null).map(({ version }) => version);
  if (bare.length > 0) await client.query("alter table carillon.migrations add column if not exists checksum text");
  for (const one of numbered.filter(({ version }) => bare.includes(version))) await record(client, one);

  const names: string[] = [];
  let current = applied.at(-1)?.version ?? 0;
  if (whole && current === 0) {
    await client.query(whole.sql);
    for (const one of numbered.filter(({ version }) => version <= whole.version)) await record(client, one);
    names.push(`${whole.name} of ${whole.version}`);
    current = whole.version;
  }
  for (const one of numbered.filter(({ version }) => version > current)) {
    await client.query(one.sql);
    await record(client, one);
    names.push(fileOf(one).replace(/\.sql$/, ""));
  }
  return names;
}

/** All that there are, and views, which whoever reads through them locks first. */
async function lockTables(client: pg.Client, patienceMs: number): Promise<void> {
  const { rows } = await client.query<{ tables: string }>(
    `select string_agg(format('carillon.%I', relname),
       ', ' order by relname <> 'tenants', coalesce(array_position($1::text[], relname::text), 0), relname) as tables
     from pg_class where relnamespace = 'carillon'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
       and pg_has_role(relowner, 'usage')`,
    [LOCKED_LAST],
  );
  // Of the statement as a whole: lock_timeout would go for each table anew.
  await client.query(`set local statement_timeout = ${patienceMs}`);
  await client.query(`lock table ${rows[0]?.tables} in access exclusive mode`);
  await client.query("set local statement_timeout to default");
}

/** In order. Databases of version 0.2.0 and before have no checksums, nor a column for them. */
async function readApplied(client: pg.Client): Promise<Applied[]> {
  await client.query("create schema if not exists carillon");
  await client.query(`create table if not exists carillon.migrations (
    version integer primary key, name text not null, applied_at timestamptz not null default now(), checksum text)`);
  const { rows } = await client.query<Applied>(
    "select version, name, to_json(m) ->> 'checksum' as checksum from carillon.migrations m order by version",
  );
  return rows;
}

async function record(client: pg.Client, migration: Migration): Promise<void> {
  await client.query(
    `insert into carillon.migrations (version, name, checksum) values ($1, $2, $3)
     on conflict (version) do update set checksum = excluded.checksum`,
    [migration.version, migration.name, checksumOf(migration)],
  );
}

/** What was applied must be what the files say; of what has no checksum, what was released under its name. */
function refuseOthers(applied: Applied[], numbered: Migration[], frozen: Migrations["frozen"]): void {
  const current = applied.at(-1)?.version ?? 0;
  const newest = numbered.at(-1)?.version ?? 0;
  if (current > newest) {
    throw new MigrationError(
      `the database has schema version ${current}, this Carillon knows versions up to ${newest}: ` +
        "run a Carillon at least as new as the one that migrated it",
    );
  }
  const known = new Map(numbered.map((one) => [fileOf(one), checksumOf(one)]));
  for (const { version, name, checksum } of applied) {
    const file = fileOf({ version, name });
    const found = known.get(file);
    if (found !== undefined && found === (checksum ?? frozen.get(file))) continue;
    throw new MigrationError(
      `migrations/${file} is not the file that was applied to this database: it was edited since, or another was. ` +
        "Nothing was changed. Put the file back as it was, and what it is to change into a new migration",
    );
  }
}
