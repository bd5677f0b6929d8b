// Makes the next sends of a tenant fail, in development.

import type pg from "pg";
import type { Providers } from "#channels/providers.ts";
import type { KeyActor } from "#domain/actor.ts";
import type { NewFault } from "#domain/dev-fault.ts";
import { invalid, type Problem } from "#domain/problems.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { clearFaults, type FaultRow, insertFault, MOST_FAULTS } from "#store/dev-faults.ts";

export type FaultWorld = { pool: pg.Pool; providers: Pick<Providers, "list"> };

const object = { kind: "faults" };

export async function injectFault(
  { pool, providers }: FaultWorld,
  actor: KeyActor,
  given: NewFault,
): Promise<FaultRow | Problem> {
  const { provider, channel, retryAfterSeconds, fault } = given;
  if (provider === undefined && channel === undefined) {
    return invalid([{ path: "/channel", message: "is required, or instead provider" }]);
  }
  const known = providers.list(actor.tenant).filter(({ type }) => type === "dev");
  if (provider !== undefined && !known.some(({ name }) => name === provider)) {
    return invalid([{ path: "/provider", message: "must be a provider of type dev: others send for good" }]);
  }
  if (retryAfterSeconds !== undefined && fault !== "429" && fault !== "503") {
    return invalid([{ path: "/retryAfterSeconds", message: "is for 429 and 503" }]);
  }
  return inTransaction(pool, async (tx) => {
    const made = await insertFault(tx, actor.tenant, given);
    if (!made) return invalid([{ path: "", message: `must not be more than ${MOST_FAULTS} that are not used up` }]);
    await writeAudit(tx, actor, { action: "faults.inject", object, after: { ...given } });
    return made;
  });
}

export const forgetFaults = ({ pool }: FaultWorld, actor: KeyActor): Promise<void> =>
  inTransaction(pool, async (tx) => {
    const cleared = await clearFaults(tx, actor.tenant);
    await writeAudit(tx, actor, { action: "faults.clear", object, before: { cleared } });
  });
