// Marks what must not be sent because its recipient bounced, complained or was taken off by hand.
//
// Most deployments have no such addresses at all, or few: whether there are any is asked every few seconds, and only then
// does a claim cost one query more.

import type { Attempt } from "../domain/attempt.ts";
import type { Queryable } from "../store/database.ts";
import { findSuppressed, hasSuppressions, suppressionKey } from "../store/suppressions.ts";

const LOOK_MS = 5_000;
const WORDS = {
  bounce: "mail to this address bounced",
  complaint: "the recipient complained",
  manual: "the address was suppressed by hand",
};

export type Suppress = (attempts: readonly Attempt[]) => Promise<void> | undefined;

export function createSuppress(db: Queryable, monotonic: () => number): Suppress {
  let isAny = true;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function mark(attempts: readonly Attempt[]): Promise<void> {
    if (monotonic() - lookedAt > LOOK_MS) {
      lookedAt = monotonic();
      isAny = await hasSuppressions(db);
    }
    if (!isAny) return;
    const wanted = attempts.flatMap((attempt) => {
      const address = addressOf(attempt);
      return address === undefined ? [] : [{ attempt, tenant: attempt.tenant, address }];
    });
    const found = wanted.length > 0 ? await findSuppressed(db, wanted) : new Map<string, never>();
    for (const { attempt, tenant, address } of wanted) {
      const why = found.get(suppressionKey(tenant, address));
      if (why !== undefined) attempt.suppression = WORDS[why];
    }
  }
  return (attempts) =>
    (isAny || monotonic() - lookedAt > LOOK_MS) && attempts.some((one) => addressOf(one) !== undefined)
      ? mark(attempts)
      : undefined;
}

function addressOf({ request: { channel, recipient } }: Attempt): string | undefined {
  return channel === "email" ? recipient?.email : channel === "sms" ? recipient?.phone : undefined;
}
