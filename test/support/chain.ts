// The numbered migrations alone, as a database goes that was made by an earlier version.

import { knownMigrations, type Migrations } from "#store/connection/migrations.ts";

/** Up to and including this version. */
export function chain(newest = Number.POSITIVE_INFINITY): Migrations {
  const { numbered, frozen } = knownMigrations();
  return { numbered: numbered.filter(({ version }) => version <= newest), frozen };
}
