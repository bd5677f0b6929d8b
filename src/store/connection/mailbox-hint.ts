// Hints that something was kept in mailboxes, from whoever kept it to those who wait for it. Sent after the commit, many tenants at once; a hint may be
// lost, and looking is the truth.

import type { Queryable } from "./database.ts";
import { type Listening, listenOn, type OnLost } from "./listen.ts";

const CHANNEL = "carillon_mailbox";
/** NOTIFY takes a lock of the whole database through its commit: no more than one in so many milliseconds. */
const LEAST_MS = 5;
/** More are not named: everybody looks. PostgreSQL takes 8000 bytes. */
const MOST_NAMED = 500;

export type MailboxHint = (tenants: readonly number[]) => void;

export function createMailboxHint(db: Queryable): MailboxHint {
  let waiting = new Set<number>();
  let lastAt = Number.NEGATIVE_INFINITY;
  function send(): void {
    lastAt = performance.now();
    const named = waiting.size <= MOST_NAMED ? [...waiting].join(",") : "";
    waiting = new Set();
    db.query("select pg_notify($1, $2)", [CHANNEL, named]).catch(() => {
      // Whoever waits looks by itself.
    });
  }
  return (tenants) => {
    const isFirst = waiting.size === 0;
    for (const tenant of tenants) waiting.add(tenant);
    if (!isFirst || waiting.size === 0) return;
    const waitMs = lastAt + LEAST_MS - performance.now();
    if (waitMs <= 0) setImmediate(send);
    else setTimeout(send, waitMs);
  };
}

/** Calls back with the tenants of every hint, through reconnects; without any when it may be about all of them. */
export function listenToMailboxes(
  url: string,
  onHint: (tenants: readonly number[] | undefined) => void,
  onLost?: OnLost,
): Listening {
  return listenOn(url, {
    name: "mailbox",
    channels: [CHANNEL],
    // Anybody who may connect to the database may send on the channel: what cannot be read is a hint about everything.
    onHeard: ({ payload = "" }) =>
      onHint(/^\d{1,9}(,\d{1,9})*$/.test(payload) ? payload.split(",").map(Number) : undefined),
    onConnected: () => onHint(undefined),
    onLost,
  });
}
