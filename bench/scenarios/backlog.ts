// Whether the rate holds when much is waiting, when much is scheduled, and when a transaction elsewhere keeps dead rows from
// being cleaned up.

import pg from "pg";
import { carillonAdapter } from "../adapters/carillon.ts";
import { drain, fill } from "../drain.ts";
import type { Case, Scenario, World } from "../scenario.ts";
import { runSql, settleStore } from "../sql.ts";
import { startWorkers } from "../worker-pool.ts";

const MILLION = 1_000_000;
const WINDOW = 50_000;

type Shape = {
  subject: string;
  settings: string;
  ready: number;
  measured: number;
  scheduled?: number;
  isHeld?: boolean;
};

function caseOf(world: World, variant: string, shape: Shape): Case {
  const adapter = carillonAdapter(world.databaseUrl);
  return {
    variant,
    subject: shape.subject,
    settings: shape.settings,
    async prepare() {
      await adapter.clear();
      await fill(adapter, shape.ready);
      if (shape.scheduled) await schedule(world.databaseUrl, shape.scheduled);
      await settleStore(world.databaseUrl);
      const holder = shape.isHeld ? await holdSnapshot(world.databaseUrl) : undefined;
      const pool = await startWorkers("carillon", "throughput", world, 1);
      const isAll = shape.measured === shape.ready;
      return {
        processes: pool.processes,
        measure: async () => ({
          perSecond: await drain(pool, shape.measured, isAll ? adapter.remaining : undefined),
        }),
        async finish() {
          await holder?.end();
          await pool.stop();
          await adapter.clear();
        },
      };
    },
  };
}

/** Rows that wait for next year, as they would after so many sends. */
async function schedule(url: string, rows: number): Promise<void> {
  await runSql(
    url,
    `insert into carillon.later (seq, due_at, priority, tenant, id)
     select nextval('carillon.acceptance'), now() + interval '1 year' + n * interval '1 s', 2, 1, carillon.new_id()
     from generate_series(1, ${rows}) n`,
  );
}

/** What a dump or an analyst's query does: an old snapshot that is still in use. */
async function holdSnapshot(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select count(*) from carillon.tenants");
  return client;
}

export const backlog: Scenario = {
  summary: "the drain rate beside a large backlog, a large schedule, and a transaction held open",
  parts: {
    size: {
      title: `Drain rate of ${WINDOW.toLocaleString("en")} with more and more behind them`,
      figure: { name: "perSecond", unit: "/s" },
      targets: [
        { variant: "drain", subject: "1,000,000 ready", against: "10,000 ready", atLeast: 0.85 },
        { variant: "drain", subject: "1,000,000 scheduled", against: "50,000 ready", atLeast: 0.95 },
      ],
      cases: (world) => [
        caseOf(world, "drain", { subject: "10,000 ready", settings: "all drained", ready: 10_000, measured: 10_000 }),
        caseOf(world, "drain", { subject: "50,000 ready", settings: "all drained", ready: WINDOW, measured: WINDOW }),
        caseOf(world, "drain", {
          subject: "1,000,000 ready",
          settings: `the first ${WINDOW} of them`,
          ready: MILLION,
          measured: WINDOW,
        }),
        caseOf(world, "drain", {
          subject: "1,000,000 scheduled",
          settings: `${WINDOW} ready beside them`,
          ready: WINDOW,
          measured: WINDOW,
          scheduled: MILLION,
        }),
      ],
    },
    held: {
      title: "Drain of 300,000 while another session holds a transaction open",
      figure: { name: "perSecond", unit: "/s" },
      targets: [{ variant: "drain", subject: "transaction held", against: "nothing held", atLeast: 0.65 }],
      cases: (world) => [
        caseOf(world, "drain", { subject: "nothing held", settings: "", ready: 300_000, measured: 300_000 }),
        caseOf(world, "drain", {
          subject: "transaction held",
          settings: "a snapshot from before the drain",
          ready: 300_000,
          measured: 300_000,
          isHeld: true,
        }),
      ],
    },
  },
};
