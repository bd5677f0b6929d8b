// Forgets what the provider dev kept of a tenant.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { clearDevMessages } from "#store/dev-messages.ts";

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
