// How endpoints fare: when something last succeeded, and since when nothing has.

import type { Queryable } from "#store/connection/database.ts";

export async function noteSuccess(db: Queryable, tenant: number, id: string): Promise<void> {
  await db.query({
    name: "carillon-endpoint-succeeded",
    text: `update carillon.endpoints set last_success_at = carillon.now(), failing_since = null where tenant = $1 and id = $2`,
    values: [tenant, id],
  });
}

/** True when it is time to give it up: nothing has succeeded for so many days, and it does not ask for more. */
export async function noteFailure(db: Queryable, tenant: number, id: string, days: number): Promise<boolean> {
  const { rows } = await db.query<{ is_over: boolean }>({
    name: "carillon-endpoint-failed",
    text: `update carillon.endpoints set failing_since = coalesce(failing_since, carillon.now())
      where tenant = $1 and id = $2
      returning state = 'active' and policy <> 'persistent' and failing_since < carillon.now() - $3 * interval '1 day' as is_over`,
    values: [tenant, id, days],
  });
  return rows[0]?.is_over ?? false;
}
