// Disables an endpoint, and tells its tenant another way: by its other endpoints, the log and the figures.

import type pg from "pg";
import { acceptedRow, webhookIdOf } from "#domain/callback.ts";
import { REQUESTS } from "#domain/endpoint.ts";
import { storeAccepted } from "#record/accept.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { findEndpointsOf, lockEndpoint, setEndpointState } from "#store/endpoints.ts";
import type { CallbackFacts } from "#telemetry/callback-facts.ts";

export type DisableWorld = { pool: pg.Pool; newId: () => string; facts: Pick<CallbackFacts, "endpointDisabled"> };

const WORKER = { kind: "process", what: "worker" } as const;

/** Once, however many ask. */
export async function disableEndpoint(
  { pool, newId, facts }: DisableWorld,
  tenant: number,
  id: string,
  reason: string,
): Promise<void> {
  const isDone = await inTransaction(pool, async (tx) => {
    const row = await lockEndpoint(tx, tenant, id);
    if (row?.state !== "active") return false;
    const disabled = await setEndpointState(tx, row, "disabled", reason);
    await writeAudit(tx, WORKER, {
      action: "endpoint.disable",
      object: { kind: "endpoint", name: id },
      tenant,
      before: { state: row.state },
      after: { state: "disabled", reason },
    });
    const timestamp = (disabled ?? row).changedAt.toISOString();
    const data = { endpointId: id, url: row.url, reason, failingSince: row.failingSince?.toISOString() ?? null };
    const others = (await findEndpointsOf(tx, [tenant])).filter(
      (one) => one.state !== "disabled" && one.id !== REQUESTS,
    );
    const rows = others.map(({ id: endpoint, policy }) => {
      const webhookId = webhookIdOf(id, "disabled", timestamp, endpoint);
      return acceptedRow({
        id: newId(),
        tenant,
        policy: policy === "persistent" ? "aggressive" : policy,
        callback: { webhookId, endpoint, type: "endpoint.disabled", timestamp, data },
      });
    });
    if (rows.length > 0) await storeAccepted(tx, rows, { hasKeys: false, hasRegions: false, hasCallbacks: false });
    return true;
  });
  if (isDone) facts.endpointDisabled(tenant, id, reason);
}
