// The database for commands that go to it themselves, past the service, which may run meanwhile.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "#config/read.ts";
import { EmbeddedError, findRunning } from "#embedded/embedded.ts";
import type { Database } from "#store/connection/database.ts";
import { MigrationError } from "#store/connection/migrations.ts";
import type { Facts } from "#telemetry/facts.ts";
import { checkDatabase, openStore, reachDatabase } from "#wiring/database.ts";
import type { World } from "../command.ts";

/** The embedded server may run already, with its Carillon. A home without a database is the wrong one, and none is made. */
export async function joinDatabase(config: Config, facts: Facts): Promise<{ url: string; stop(): Promise<void> }> {
  const { databaseUrl, home } = config;
  if (databaseUrl !== undefined) {
    // Whoever needs this has trouble enough: what is wrong with the database is told in a sentence.
    await checkDatabase(config.databaseDirectUrl ?? databaseUrl);
    return reachDatabase(config, facts);
  }
  if (!existsSync(join(home, "postgres"))) {
    throw new EmbeddedError(
      `There is no database in ${home}. Set CARILLON_HOME or DATABASE_URL to the one that Carillon uses.`,
    );
  }
  const running = await findRunning(home);
  return running === undefined ? reachDatabase(config, facts) : { url: running, stop: async () => {} };
}

/** Opened for one piece of work, and closed whatever comes of it. */
export async function withDatabase<Value>(
  world: Pick<World, "config" | "facts">,
  use: (database: Database) => Promise<Value>,
): Promise<Value> {
  const [config, facts] = [await world.config(), await world.facts()];
  const server = await joinDatabase(config, facts);
  const database = openStore(config, { url: server.url }, facts);
  try {
    return await use(database);
  } catch (error) {
    throw ageFaultOf(error) ?? error;
  } finally {
    await database.close();
    await server.stop();
  }
}

const UNDEFINED_TABLE = "42P01";
const UNDEFINED_FUNCTION = "42883";

/** What is asked of a database that does not know it yet. */
function ageFaultOf(cause: unknown): MigrationError | undefined {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === UNDEFINED_FUNCTION) {
    return new MigrationError("this database is older than this Carillon: run carillon migrate first", { cause });
  }
  if (code !== UNDEFINED_TABLE) return undefined;
  return new MigrationError("this database has never been used by Carillon: start it there, and it makes a key", {
    cause,
  });
}
