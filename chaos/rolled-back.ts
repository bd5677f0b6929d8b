// Claims that had rows locked and were rolled back: cut off or cancelled in the middle, they leave no trace in the journal.
//
// They are looked at from outside, every few milliseconds; how each ended is asked when all is over. State: those that were seen.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { RolledBack } from "./history.ts";
import { withClient } from "./journal.ts";

/** A claim that has locked something has a number. Its own text tells it from whatever else is under way. */
const LOOK = `
  select backend_xid::text::float8 as xid, (extract(epoch from query_start) * 1000)::float8 as "beganAt"
  from pg_stat_activity where backend_xid is not null and query like '%carillon.queue_plan(%' and pid <> pg_backend_pid()`;
const LOOK_MS = 15;
const AGAIN_MS = 50;

export type ClaimWatch = {
  /** Which were rolled back; after it nobody looks any more. */
  end(): Promise<RolledBack[]>;
};

export function watchClaims(url: string): ClaimWatch {
  const over = new AbortController();
  const seen = new Map<number, RolledBack>();
  let current = new Set<number>();

  async function look(db: pg.Client): Promise<void> {
    const { rows } = await db.query<Pick<RolledBack, "xid" | "beganAt">>(LOOK);
    const at = Date.now();
    const now = new Set(rows.map(({ xid }) => xid));
    // What is not seen any more may have gone on until just now.
    for (const xid of [...current, ...now]) {
      const one = seen.get(xid);
      if (one) one.until = at;
    }
    for (const { xid, beganAt } of rows) if (!seen.has(xid)) seen.set(xid, { xid, beganAt, until: at });
    current = now;
  }

  async function run(): Promise<void> {
    while (!over.signal.aborted) {
      const db = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
      db.on("error", () => undefined);
      try {
        await db.connect();
        for (; !over.signal.aborted; await sleep(LOOK_MS)) await look(db);
      } catch {
        // The server is away, and all that was under way with it.
        await sleep(AGAIN_MS);
      } finally {
        await db.end().catch(() => undefined);
      }
    }
  }
  const running = run();

  return {
    async end() {
      over.abort();
      await running;
      return withClient(url, async (db) => {
        const { rows } = await db.query<{ xid: number }>(
          `select xid from unnest($1::float8[]) xid where pg_xact_status(xid::bigint::text::xid8) = 'aborted'`,
          [[...seen.keys()]],
        );
        return rows.map(({ xid }) => seen.get(xid) as RolledBack);
      });
    },
  };
}
