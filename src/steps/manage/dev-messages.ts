// Forgets what the provider dev kept of a tenant.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { Problem } from "#domain/problems.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { clearDevMessages, deleteDevMessage } from "#store/dev-messages.ts";

export type DevWorld = { pool: pg.Pool };

export const forgetDevMessages = ({ pool }: DevWorld, actor: KeyActor): Promise<void> =>
  inTransaction(pool, async (tx) => {
    const cleared = await clearDevMessages(tx, actor.tenant);
    await writeAudit(tx, actor, {
      action: "dev-messages.clear",
      object: { kind: "dev-messages" },
      before: { cleared },
    });
  });

export const forgetDevMessage = ({ pool }: DevWorld, actor: KeyActor, id: string): Promise<true | Problem> =>
  inTransaction(pool, async (tx) => {
    if (!(await deleteDevMessage(tx, actor.tenant, id))) return new Problem("NOT_FOUND", `there is no message ${id}`);
    await writeAudit(tx, actor, { action: "dev-message.delete", object: { kind: "dev-message", name: id } });
    return true;
  });
