// carillon admin-key: the way back for whoever has lost every admin key. It writes to the database itself, past the service,
// which may run meanwhile: who can do that can do everything else as well.

import { Problem } from "#domain/problems.ts";
import { makeKey } from "#steps/manage/keys.ts";
import type { Run } from "../command.ts";
import { withDatabase } from "./join-database.ts";
import { said } from "./lines.ts";
import { osUser } from "./os-user.ts";

/** Makes an admin key of the default tenant; what is printed is its only copy. */
export const makeAdminKey: Run = async (_call, world) => {
  const made = await withDatabase(world, async ({ own: pool }) => {
    const actor = { kind: "command-line", command: "admin-key", user: osUser() } as const;
    return makeKey({ pool, now: () => new Date() }, actor, { name: "carillon admin-key", scopes: ["admin"] });
  });
  if (made instanceof Problem) throw made;
  return said(`admin key, shown only this once: ${made.key}`, made);
};
