// Hints that inboxes changed, from whoever changed them to the streams. Sent after the commit, many users at once; a hint
// may be lost, and looking is the truth.

import pg from "pg";
import type { Inbox } from "../domain/inbox.ts";
import type { Queryable } from "./database.ts";

const CHANNEL = "carillon_inbox";
/** NOTIFY takes a lock of the whole database through its commit: no more than one in so many milliseconds. */
const LEAST_MS = 5;
const RECONNECT_MS = 1_000;
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
): { stop(): Promise<void> } {
  let isStopped = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function connect(): Promise<void> {
    const mine = new pg.Client({
      connectionString: url,
      application_name: "carillon stream",
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    });
    client = mine;
    mine.on("error", () => undefined);
    mine.on("notification", ({ payload }) => onHint(inboxesOf(payload ?? "")));
    mine.on("end", again);
    try {
      await mine.connect();
      await mine.query(`listen ${CHANNEL}`);
      onHint(undefined);
    } catch {
      await mine.end().catch(() => undefined);
      again();
    }
  }
  function again(): void {
    if (isStopped || timer) return;
    timer = setTimeout(() => {
      timer = undefined;
      void connect();
    }, RECONNECT_MS);
  }
  void connect();
  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
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
