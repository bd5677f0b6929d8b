// Marks what must not be sent because its recipient bounced, complained or was taken off by hand, and takes such addresses
// out of the copies of a mail.
//
// Most deployments have no such addresses at all, or few: whether there are any is asked every few seconds, and only then
// does a claim cost one query more.

import type { Attempt } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findSuppressed, hasSuppressions, suppressionKey } from "#store/suppressions.ts";

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
    const now = monotonic();
    if (now - lookedAt > LOOK_MS) {
      isAny = await hasSuppressions(db);
      // Only now: a look that failed has seen nothing.
      lookedAt = now;
    }
    if (!isAny) return;
    const wanted = attempts.flatMap((attempt) =>
      addressesOf(attempt).map((address) => ({ tenant: attempt.tenant, address })),
    );
    const found = wanted.length > 0 ? await findSuppressed(db, wanted) : new Map<string, never>();
    if (found.size === 0) return;
    for (const attempt of attempts) {
      const [address] = addressesOf(attempt);
      const why = address === undefined ? undefined : found.get(suppressionKey(attempt.tenant, address));
      if (why !== undefined) attempt.suppression = WORDS[why];
      else if (hasCopies(attempt)) {
        attempt.request = withoutCopies(attempt.request, (copy) => found.has(suppressionKey(attempt.tenant, copy)));
      }
    }
  }
  return (attempts) =>
    (isAny || monotonic() - lookedAt > LOOK_MS) && attempts.some((one) => addressesOf(one).length > 0)
      ? mark(attempts)
      : undefined;
}

/** The recipient's first, then those who get copies. */
function addressesOf({ request: { channel, recipient = {}, content } }: Attempt): string[] {
  if (channel === "sms") return recipient.phone === undefined ? [] : [recipient.phone];
  if (channel !== "email" || recipient.email === undefined) return [];
  return [recipient.email, ...(content.cc ?? []), ...(content.bcc ?? [])];
}

const hasCopies = ({ request: { channel, content } }: Attempt): boolean =>
  channel === "email" && (content.cc !== undefined || content.bcc !== undefined);

function withoutCopies(request: NotificationRequest, isSuppressed: (address: string) => boolean): NotificationRequest {
  const { cc = [], bcc = [], ...content } = request.content;
  const left = { cc: cc.filter((copy) => !isSuppressed(copy)), bcc: bcc.filter((copy) => !isSuppressed(copy)) };
  return {
    ...request,
    content: { ...content, ...(left.cc.length > 0 && { cc: left.cc }), ...(left.bcc.length > 0 && { bcc: left.bcc }) },
  };
}
