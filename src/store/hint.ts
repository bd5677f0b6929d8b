// Hints between processes: "something may be ready". A hint may be lost; polling is the truth.
//
// NOTIFY takes a lock on the whole database through its commit, so it is never part of anybody's transaction:
// it is sent after the commit, on its own, at most once every few milliseconds.

import pg from "pg";
import type { Queryable } from "./database.ts";

const CHANNEL = "carillon_ready";
const LEAST_MS = 5;
const RECONNECT_MS = 1_000;

/** Tells the other processes, soon. Calls in between are one call. */
export function createHint(db: Queryable): () => void {
  let isPlanned = false;
  let lastAt = Number.NEGATIVE_INFINITY;
  const tell = () => {
    isPlanned = false;
    lastAt = performance.now();
    db.query(`notify ${CHANNEL}`).catch(() => {
      // Whoever sleeps polls.
    });
  };
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    const waitMs = lastAt + LEAST_MS - performance.now();
    if (waitMs <= 0) setImmediate(tell);
    else setTimeout(tell, waitMs);
  };
}

/** Calls back for every hint, through reconnects; also after one, since something may have been missed. */
export function listen(url: string, onHint: () => void): { stop(): Promise<void> } {
  let isStopped = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function connect(): Promise<void> {
    const mine = new pg.Client({
      connectionString: url,
      application_name: "carillon listen",
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    });
    client = mine;
    mine.on("error", () => undefined);
    mine.on("notification", onHint);
    mine.on("end", again);
    try {
      await mine.connect();
      await mine.query(`listen ${CHANNEL}`);
      onHint();
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
