// Stores callbacks that were made, in the transaction that moves on whoever made them. What the database refuses is refused alone.

import { bisect } from "#domain/bisect.ts";
import { acceptedRow, type NewCallback } from "#domain/callback.ts";
import { lineUp } from "#queue/postgres/lines.ts";
import { storeAccepted } from "#record/accept.ts";
import { isOutage, isPassing, type Queryable, trying } from "#store/connection/database.ts";
import type { CallbackFacts } from "#telemetry/callback-facts.ts";

/** Answers with how many were. */
export async function storeCallbacks(
  tx: Queryable,
  callbacks: readonly NewCallback[],
  facts: Pick<CallbackFacts, "refused">,
): Promise<number> {
  if (callbacks.length === 0) return 0;
  const none = { hasKeys: false, hasRegions: false, hasCallbacks: false };
  const stored = await bisect<NewCallback, boolean>(callbacks, {
    async act(some) {
      const tried = await trying(tx, () => storeAccepted(tx, some.map(acceptedRow), none));
      if (tried instanceof Error) throw tried;
      return some.map(() => true);
    },
    isOutage: (error) => isOutage(error) || isPassing(error),
    refuse(error, { tenant, callback }) {
      facts.refused(tenant, callback.webhookId, error);
      return false;
    },
  });
  const made = callbacks.filter((_, n) => stored[n]);
  await lineUp(
    tx,
    made.flatMap(({ id, tenant, callback: { line } }) => (line === undefined ? [] : [{ line, tenant: -tenant, id }])),
  );
  return made.length;
}
