// Whether anything may be claimed now, without counting it.

import type { Queryable } from "#store/connection/database.ts";

export async function hasReady(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ waits: boolean }>("select exists (select from carillon.ready) as waits");
  return rows[0]?.waits ?? false;
}
