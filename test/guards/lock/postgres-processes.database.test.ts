// Locks in PostgreSQL between processes.

import { migrate } from "#store/connection/migrate.ts";
import { lockProcesses } from "../../conformance/lock-processes.ts";
import { freshDatabase } from "../../support/postgres.ts";

lockProcesses("PostgreSQL", 1_000, async () => {
  const database = await freshDatabase();
  await migrate(database.url);
  return { at: { url: database.url }, stop: database.drop };
});
