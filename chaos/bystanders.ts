// Other people's transactions on the same database: they send and commit late, roll back, are prepared and forgotten for a while.
//
// As long as one of them is open, nothing that was written after it began may be told to followers; when it commits, what it wrote
// must not be behind them. State: what was promised, and the transactions under way.

import { setTimeout as sleep } from "node:timers/promises";
import type { Fault, Promised } from "./history.ts";
import { withClient } from "./journal.ts";
import { type Given, makeRequest } from "./requests.ts";

const ENDS = ["commit", "rollback", "commit prepared", "rollback prepared"] as const;
type End = (typeof ENDS)[number];

export type BystanderOptions = {
  url: string;
  tenants: readonly string[];
  shaping: () => number;
  random: () => number;
  given: (tenant: string) => Given;
  onFault: (fault: Fault) => void;
};

export type Bystanders = {
  promised: Promised[];
  /** Ends what is open, and what a crash has left prepared. */
  stop(): Promise<void>;
};

const LINES = 2;
const AGAIN_MS = 100;
/** Without a hint, as a NOTIFY cannot be prepared. */
const BEGIN = "begin; set local carillon.hints = off";

export function startBystanders(options: BystanderOptions): Bystanders {
  const { url, tenants, shaping, random, given, onFault } = options;
  const promised: Promised[] = [];
  const over = new AbortController();
  const wait = (ms: number) => sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
  let count = 0;

  async function openOne(end: End): Promise<void> {
    const call = `transaction ${count++}`;
    const tenant = tenants[Math.floor(shaping() * tenants.length)] ?? "";
    const calls = Array.from({ length: 1 + Math.floor(shaping() * 3) }, (_, index): Promised => {
      const key = `${call}, number ${index}`;
      return { call, key, tenant, request: makeRequest(key, shaping, given(tenant)), answer: { kind: "unknown" } };
    });
    const [openMs, preparedMs] = [200 + random() * 1_500, 200 + random() * 1_500];
    promised.push(...calls);
    const at = Date.now();
    const isPrepared = end.endsWith("prepared");
    try {
      const ids = await withClient(url, async (db) => {
        await db.query(BEGIN);
        const sent: string[] = [];
        for (const { request } of calls) {
          const { rows } = await db.query<{ id: string }>("select carillon.send($1, $2) as id", [request, tenant]);
          sent.push(rows[0]?.id ?? "");
        }
        await wait(openMs);
        await db.query(isPrepared ? `prepare transaction '${call}'` : end);
        return sent;
      });
      if (isPrepared) {
        await wait(preparedMs);
        await untilDone(() => withClient(url, (db) => db.query(`${end} '${call}'`)));
      }
      const isKept = end.startsWith("commit");
      for (const [n, one] of calls.entries()) {
        one.answer = isKept ? { kind: "acknowledged", ids: [ids[n] ?? ""] } : { kind: "refused", code: "ROLLED_BACK" };
      }
      onFault({ kind: `${isPrepared ? "prepared" : "long"} transaction`, at, until: Date.now() });
    } catch {
      // The server went away in the middle: nobody knows, and it is wholly there or wholly absent.
    }
  }

  /** What is prepared outlives the server. */
  async function untilDone(act: () => Promise<unknown>): Promise<void> {
    while (!(await act().then(() => true, isGone))) await sleep(AGAIN_MS);
  }

  async function run(line: number): Promise<void> {
    for (let n = line; !over.signal.aborted; n += LINES) {
      await openOne(ENDS[n % ENDS.length] as End);
      await wait(200 + random() * 800);
    }
  }
  const running = Array.from({ length: LINES }, (_, line) => run(line));

  return {
    promised,
    async stop() {
      over.abort();
      await Promise.all(running);
      await withClient(url, async (db) => {
        const { rows } = await db.query<{ gid: string }>("select gid from pg_prepared_xacts");
        for (const { gid } of rows) await db.query(`rollback prepared '${gid}'`);
      });
    },
  };
}

/** Whether it was ended before, and only the answer was lost. */
const isGone = (error: unknown): boolean => (error as { code?: string }).code === "42704";
