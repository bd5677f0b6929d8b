// carillon admin-key: the way back for whoever has lost every admin key. It writes to the database itself, past the service,
// which may run meanwhile: who can do that can do everything else as well.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "#config/read.ts";
import { Problem } from "#domain/problems.ts";
import { EmbeddedError, findRunning } from "#embedded/embedded.ts";
import { makeKey } from "#steps/manage/keys.ts";
import { MigrationError } from "#store/connection/migrations.ts";
import type { Facts } from "#telemetry/facts.ts";
import { checkDatabase, openStore, reachDatabase } from "#wiring/database.ts";
import { osUser } from "./os-user.ts";

const UNDEFINED_TABLE = "42P01";
const UNDEFINED_FUNCTION = "42883";

/** Makes an admin key of the default tenant; what is returned is its only copy. */
export async function makeAdminKey(config: Config, facts: Facts): Promise<string> {
  const server = await joinDatabase(config, facts);
  const database = openStore(config, { url: server.url }, facts);
  try {
    const world = { pool: database.own, now: () => new Date() };
    const actor = { kind: "command-line", command: "admin-key", user: osUser() } as const;
    const made = await makeKey(world, actor, { name: "carillon admin-key", scopes: ["admin"] });
    if (made instanceof Problem) throw made;
    return made.key;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === UNDEFINED_FUNCTION) {
      throw new MigrationError("this database is older than this Carillon: run carillon migrate first", {
        cause: error,
      });
    }
    if (code !== UNDEFINED_TABLE) throw error;
    throw new MigrationError("this database has never been used by Carillon: start it there, and it makes a key", {
      cause: error,
    });
  } finally {
    await database.close();
    await server.stop();
  }
}

/** The embedded server may run already, with its Carillon. A home without a database is the wrong one, and none is made. */
async function joinDatabase(config: Config, facts: Facts): Promise<{ url: string; stop(): Promise<void> }> {
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
