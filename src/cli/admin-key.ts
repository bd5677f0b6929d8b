// carillon admin-key: the way back for whoever has lost every admin key. It writes to the database itself, past the service,
// which may run meanwhile: who can do that can do everything else as well.

import type { Config } from "#config/read.ts";
import { Problem } from "#domain/problems.ts";
import { makeKey } from "#steps/manage/keys.ts";
import type { Facts } from "#telemetry/facts.ts";
import { openStore } from "#wiring/database.ts";
import { ageFaultOf, joinDatabase } from "./join-database.ts";
import { osUser } from "./os-user.ts";

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
    throw ageFaultOf(error) ?? error;
  } finally {
    await database.close();
    await server.stop();
  }
}
