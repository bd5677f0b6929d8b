// Tenants, as those see them who run the deployment.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { Problem } from "#domain/problems.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { setWeight, type TenantRow } from "#store/tenants.ts";
import { mustOperate } from "./keys.ts";

export type TenantWorld = { pool: pg.Pool };

/** Its share of what is sent while others wait, beside those of the others. */
export async function weighTenant(
  { pool }: TenantWorld,
  actor: KeyActor,
  name: string,
  weight: number,
): Promise<TenantRow | Problem> {
  const allowed = mustOperate(actor);
  if (allowed instanceof Problem) return allowed;
  const tenant = await inTransaction(pool, async (tx) => {
    const weighed = await setWeight(tx, name, weight);
    if (!weighed) return undefined;
    const object = { kind: "tenant", name };
    const [before, after] = [{ weight: weighed.weightBefore }, { weight }];
    await writeAudit(tx, actor, { action: "tenant.weigh", object, tenant: weighed.id, before, after });
    return weighed;
  });
  return tenant ?? new Problem("NOT_FOUND", `there is no tenant ${name}`);
}
