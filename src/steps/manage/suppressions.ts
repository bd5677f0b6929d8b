// Addresses that a person keeps from being sent to, or lets be sent to again.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { deleteSuppression, lowered, putSuppression, type Suppression } from "#store/suppressions.ts";

export type SuppressionWorld = { pool: pg.Pool };

/** One that was suppressed already stays as it was: why it came here is not forgotten. */
export const addSuppression = (
  { pool }: SuppressionWorld,
  actor: KeyActor,
  address: string,
  reason: string | undefined,
): Promise<Suppression> =>
  inTransaction(pool, async (tx) => {
    const { isNew, ...kept } = await putSuppression(tx, actor.tenant, address, reason ?? null);
    const object = { kind: "suppression", name: kept.address };
    if (isNew) await writeAudit(tx, actor, { action: "suppression.keep", object, after: { why: kept.why } });
    return kept;
  });

/** False when the address is not suppressed. */
export const liftSuppression = ({ pool }: SuppressionWorld, actor: KeyActor, address: string): Promise<boolean> =>
  inTransaction(pool, async (tx) => {
    const isLifted = await deleteSuppression(tx, actor.tenant, address);
    const object = { kind: "suppression", name: lowered(address) };
    if (isLifted) await writeAudit(tx, actor, { action: "suppression.lift", object });
    return isLifted;
  });
