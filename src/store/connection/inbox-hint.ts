// Hints that inboxes changed, from whoever changed them to the streams. Sent after the commit, many users at once; a hint
// may be lost, and looking is the truth.

import type { Inbox } from "#domain/inbox.ts";
import type { Queryable } from "./database.ts";
import { type Listening, listenOn, type OnLost } from "./listen.ts";

const CHANNEL = "carillon_inbox";
/** NOTIFY takes a lock of the whole database through its commit: no more than one in so many milliseconds. */
const LEAST_MS = 5;
/** PostgreSQL takes 8000 bytes. */
const MAX_BYTES = 7_000;

export type InboxHint = (inboxes: readonly Inbox[]) => void;

export function createInboxHint(db: Queryable): InboxHint {
  let waiting = new Map<string, Inbox>();
  let lastAt = Number.NEGATIVE_INFINITY;
  function send(): void {
    lastAt = performance.now();
    const payload = JSON.stringify([...waiting.values()].map(({ tenant, userId }) => [tenant, userId]));
    waiting = new Map();
    // Too many to name: everybody looks.
    const named = Buffer.byteLength(payload) <= MAX_BYTES ? payload : "";
    db.query("select pg_notify($1, $2)", [CHANNEL, named]).catch(() => {
      // Streams look by themselves.
    });
  }
  return (inboxes) => {
    const isFirst = waiting.size === 0;
    for (const inbox of inboxes) waiting.set(`${inbox.tenant} ${inbox.userId}`, inbox);
    if (!isFirst || waiting.size === 0) return;
    const waitMs = lastAt + LEAST_MS - performance.now();
    if (waitMs <= 0) setImmediate(send);
    else setTimeout(send, waitMs);
  };
}

/** Calls back with the inboxes of every hint, through reconnects; without any when it may be about all of them. */
export function listenToInboxes(
  url: string,
  onHint: (inboxes: Inbox[] | undefined) => void,
  onLost?: OnLost,
): Listening {
  return listenOn(url, {
    name: "stream",
    channels: [CHANNEL],
    onHeard: ({ payload }) => onHint(inboxesOf(payload ?? "")),
    onConnected: () => onHint(undefined),
    onLost,
  });
}

/** Anybody who may connect to the database may send on the channel: what cannot be read is a hint about everything. */
function inboxesOf(payload: string): Inbox[] | undefined {
  try {
    const named: unknown = JSON.parse(payload);
    if (!Array.isArray(named)) return undefined;
    return named.map(([tenant, userId]) => ({ tenant: Number(tenant), userId: String(userId) }));
  } catch {
    return undefined;
  }
}
