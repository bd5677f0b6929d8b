// Tenants, as those see them who run the deployment.

import type { KeyActor } from "#domain/actor.ts";
import { Problem } from "#domain/problems.ts";
import type { Queryable } from "#store/connection/database.ts";
import { setWeight, type TenantRow } from "#store/tenants.ts";
import { mustOperate } from "./keys.ts";

/** Its share of what is sent while others wait, beside those of the others. */
export async function weighTenant(
  db: Queryable,
  actor: KeyActor,
  name: string,
  weight: number,
): Promise<TenantRow | Problem> {
  const allowed = mustOperate(actor);
  if (allowed instanceof Problem) return allowed;
  const tenant = await setWeight(db, name, weight);
  return tenant ?? new Problem("NOT_FOUND", `there is no tenant ${name}`);
}
