// Addresses that a person keeps from being sent to, or lets be sent to again.

import type { KeyActor } from "#domain/actor.ts";
import type { Queryable } from "#store/connection/database.ts";
import { deleteSuppression, putSuppression, type Suppression } from "#store/suppressions.ts";

/** One that was suppressed already stays as it was: why it came here is not forgotten. */
export const addSuppression = (
  db: Queryable,
  actor: KeyActor,
  address: string,
  reason: string | undefined,
): Promise<Suppression> => putSuppression(db, actor.tenant, address, reason ?? null);

/** False when the address is not suppressed. */
export const liftSuppression = (db: Queryable, actor: KeyActor, address: string): Promise<boolean> =>
  deleteSuppression(db, actor.tenant, address);
