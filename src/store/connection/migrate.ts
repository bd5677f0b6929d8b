// Brings the schema `carillon` up to the version this code knows: numbered files, forward only.
//
// All pending files run in one transaction under a lock of the database, so that replicas may
// start together, and a failure leaves the schema as it was.

import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { leadingUrl } from "./servers.ts";

const DIRECTORY = new URL("../../../migrations/", import.meta.url);
/** Any number will do as long as nobody else locks it: "carillon" in ASCII. */
const LOCK = "7161126405839445870";
const OLDEST_POSTGRES = 14;

export class MigrationError extends Error {
  override name = "MigrationError";
}

type Migration = { version: number; name: string; sql: string };

export function knownMigrations(): Migration[] {
  return readdirSync(DIRECTORY)
    .filter((file) => /^\d{4}_.+\.sql$/.test(file))
    .sort()
    .map((file) => ({
      version: Number(file.slice(0, 4)),
      name: file.slice(5, -4),
      sql: readFileSync(new URL(file, DIRECTORY), "utf8"),
    }));
}

/** Connects and looks whether the server will do, without a change. */
export const inspectServer = (url: string): Promise<void> => withClient(url, checkServer);

/** Returns the names of the migrations it applied; none when the schema was up to date. */
export function migrate(url: string, known = knownMigrations()): Promise<string[]> {
  return withClient(url, async (client) => {
    await checkServer(client);
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [LOCK]);
    const applied = await applyPending(client, known);
    await client.query("commit");
    return applied;
  });
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

async function applyPending(client: pg.Client, known: Migration[]): Promise<string[]> {
  await client.query("create schema if not exists carillon");
  await client.query(`create table if not exists carillon.migrations (
    version integer primary key, name text not null, applied_at timestamptz not null default now())`);
  const { rows } = await client.query<{ version: number }>("select max(version) as version from carillon.migrations");
  const current = rows[0]?.version ?? 0;
  const newest = known.at(-1)?.version ?? 0;
  if (current > newest) {
    throw new MigrationError(
      `the database has schema version ${current}, this Carillon knows versions up to ${newest}: ` +
        "run a Carillon at least as new as the one that migrated it",
    );
  }
  const pending = known.filter(({ version }) => version > current);
  for (const { version, name, sql } of pending) {
    await client.query(sql);
    await client.query("insert into carillon.migrations (version, name) values ($1, $2)", [version, name]);
  }
  return pending.map(({ version, name }) => `${String(version).padStart(4, "0")}_${name}`);
}
