// Brings the schema `carillon` up to the version this code knows: numbered files, forward only.
//
// All pending files run in one transaction under a lock of the database, so that replicas may
// start together, and a failure leaves the schema as it was. A new database gets the whole schema at once.
//
// The table carillon.migrations keeps a checksum of each file. One that was edited after it was applied is refused: what it says
// now is not what this database has.

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
/** Whoever waits for the lock of a table has everybody else wait behind it: not for longer than this, and then again. */
const LOCK_MS = 2_000;
const MOST_TRIES = 5;

/** Connects and looks whether the server will do, without a change. */
export const inspectServer = (url: string): Promise<void> => withClient(url, checkServer);

/** Returns the names of what it applied; none when the schema was up to date. */
export async function migrate(url: string, known = knownMigrations()): Promise<string[]> {
  refuseEdited(known);
  for (let tries = 1; ; tries += 1) {
    try {
      return await withClient(url, (client) => applyAll(client, known));
    } catch (error) {
      if (!isPassing(error)) throw error;
      if (tries < MOST_TRIES) continue;
      const words =
        "something holds a table that has to be changed, such as a backup or a long query. Nothing was changed. " +
        "End it, or start again when it is over";
      throw new MigrationError(words, { cause: error });
    }
  }
}

async function applyAll(client: pg.Client, known: Migrations): Promise<string[]> {
  await checkServer(client);
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock($1)", [LOCK]);
  await client.query(`set local lock_timeout = ${LOCK_MS}`);
  const applied = await applyPending(client, known);
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

async function applyPending(client: pg.Client, { numbered, whole, frozen }: Migrations): Promise<string[]> {
  const applied = await readApplied(client);
  refuseOthers(applied, numbered, frozen);
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
