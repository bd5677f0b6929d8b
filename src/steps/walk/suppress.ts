// Marks what must not be sent because its recipient bounced, complained or was taken off by hand, and takes such addresses
// out of the copies of a mail.
//
// Most deployments have no such addresses at all, or few: whether there are any is asked every few seconds, and only then
// does a claim cost one query more. State: when that was last asked, and the answer.

import type { Claimed } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findSuppressed, hasSuppressions, suppressionKey } from "#store/suppressions.ts";
import type { Findings } from "./prepare.ts";

const LOOK_MS = 5_000;

type Addressed = Claimed & Pick<Findings, "suppression">;

/** Whether there are any, as far as is known. */
export class Suppressions {
  readonly db: Queryable;
  readonly #monotonic: () => number;
  #areAny = true;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(db: Queryable, monotonic: () => number) {
    this.db = db;
    this.#monotonic = monotonic;
  }

  /** Certain only for a few seconds after a look. */
  mayBeAny(): boolean {
    return this.#areAny || this.#monotonic() - this.#lookedAt > LOOK_MS;
  }

  async areAny(): Promise<boolean> {
    const now = this.#monotonic();
    if (now - this.#lookedAt > LOOK_MS) {
      this.#areAny = await hasSuppressions(this.db);
      // Only now: a look that failed has seen nothing.
      this.#lookedAt = now;
    }
    return this.#areAny;
  }
}

/** Undefined when there is nothing to look up. */
export function suppress(attempts: readonly Addressed[], suppressions: Suppressions): Promise<void> | undefined {
  return suppressions.mayBeAny() && attempts.some((one) => addressesOf(one).length > 0)
    ? mark(attempts, suppressions)
    : undefined;
}

async function mark(attempts: readonly Addressed[], suppressions: Suppressions): Promise<void> {
  if (!(await suppressions.areAny())) return;
  const wanted = attempts.flatMap((attempt) =>
    addressesOf(attempt).map((address) => ({ tenant: attempt.tenant, address })),
  );
  const found = wanted.length > 0 ? await findSuppressed(suppressions.db, wanted) : new Map<string, never>();
  if (found.size === 0) return;
  for (const attempt of attempts) {
    const [address] = addressesOf(attempt);
    const why = address === undefined ? undefined : found.get(suppressionKey(attempt.tenant, address));
    if (why !== undefined) attempt.suppression = why;
    else if (hasCopies(attempt)) {
      attempt.request = withoutCopies(attempt.request, (copy) => found.has(suppressionKey(attempt.tenant, copy)));
    }
  }
}

/** The recipient's first, then those who get copies. */
function addressesOf({ request: { channel, recipient = {}, content } }: Claimed): string[] {
  if (channel === "sms") return recipient.phone === undefined ? [] : [recipient.phone];
  if (channel !== "email" || recipient.email === undefined) return [];
  return [recipient.email, ...(content.cc ?? []), ...(content.bcc ?? [])];
}

const hasCopies = ({ request: { channel, content } }: Claimed): boolean =>
  channel === "email" && (content.cc !== undefined || content.bcc !== undefined);

function withoutCopies(request: NotificationRequest, isSuppressed: (address: string) => boolean): NotificationRequest {
  const { cc = [], bcc = [], ...content } = request.content;
  const left = { cc: cc.filter((copy) => !isSuppressed(copy)), bcc: bcc.filter((copy) => !isSuppressed(copy)) };
  return {
    ...request,
    content: { ...content, ...(left.cc.length > 0 && { cc: left.cc }), ...(left.bcc.length > 0 && { bcc: left.bcc }) },
  };
}
