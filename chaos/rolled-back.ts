// Transactions that had rows of the queue locked and were rolled back: claims that were cut off, an expiry or a cancel in the middle of which
// somebody was frozen. They leave no trace in the journal.
//
// They are looked at from outside, every few milliseconds; how each ended is asked when all is over. State: those that were seen.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { RolledBack } from "./history.ts";
import { withClient } from "./journal.ts";

/** Who takes from the lanes: workers' claims, the keeper's chores, whoever cancels. What has locked something has a number. */
const LOOK = `
  select backend_xid::text::float8 as xid, (extract(epoch from xact_start) * 1000)::float8 as "beganAt",
    regexp_replace(left(query, 100), '\\s+', ' ', 'g') as statement
  from pg_stat_activity where backend_xid is not null and application_name in ('carillon work', 'carillon house', 'carillon small')`;
const LOOK_MS = 15;
const AGAIN_MS = 50;

export type LockWatch = {
  /** Which were rolled back; after it nobody looks any more. */
  end(): Promise<RolledBack[]>;
};

export function watchLocks(url: string): LockWatch {
  const over = new AbortController();
  const seen = new Map<number, RolledBack>();
  let current = new Set<number>();

  async function look(db: pg.Client): Promise<void> {
    const { rows } = await db.query<Omit<RolledBack, "until">>(LOOK);
    const at = Date.now();
    const now = new Set(rows.map(({ xid }) => xid));
    for (const xid of current) {
      const one = seen.get(xid);
      // What is not seen any more may have gone on until just now.
      if (one) one.until = at;
    }
    for (const row of rows)
      seen.set(row.xid, { ...row, beganAt: seen.get(row.xid)?.beganAt ?? row.beganAt, until: at });
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
