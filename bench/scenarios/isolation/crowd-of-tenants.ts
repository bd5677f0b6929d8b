// Whether many tenants cost more than one: the same drain, all of one tenant and of ten thousand.

import pg from "pg";
import { createIds } from "../../../src/domain/ids.ts";
import { Problem } from "../../../src/domain/problems.ts";
import { foldTallies } from "../../../src/steps/planned/fold-tallies.ts";
import { rowFor, storeRows } from "../../../src/steps/walk/rows.ts";
import { carillonAdapter, makeTenants } from "../../adapters/carillon.ts";
import { secondsOf } from "../../cpu.ts";
import { drain, inBatches } from "../../drain.ts";
import { notification } from "../../payload.ts";
import type { Figures, Part } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";

/** Of fewer, half is over before it is at full speed. */
const JOBS = Number(process.env.JOBS ?? 250_000);
const ONE = "1 tenant";
const MANY = "10,000 tenants";
const COUNTS = { [ONE]: 1, [MANY]: 10_000 };

/** As an instance puts requests of many tenants into its commits: the first of each tenant, then the second of each, and so on. */
async function fill(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  const { rows } = await pool.query<{ id: number }>(
    "select id from carillon.tenants where name like 'tenant-%' order by id",
  );
  const numbering = { newId: createIds(), now: () => new Date() };
  await inBatches(JOBS, async (from, size) => {
    const accepted = Array.from({ length: size }, (_, k) => {
      const row = rowFor(rows[(from + k) % rows.length]?.id ?? 0, notification(from + k), numbering, new Date());
      if (row instanceof Problem) throw row;
      return row;
    });
    await storeRows(pool, accepted);
  });
  await pool.end();
}

/** Counts what was accepted, as an instance at work has done by then: counting so many tenants' acceptances is no part of a drain. */
async function countAccepted(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  for (let round = await foldTallies(pool); round && (round.facts > 0 || !round.isAtEnd); )
    round = await foldTallies(pool);
  await pool.end();
}

/** Processor time of these for each notification: on a busy machine it tells more than the pace. */
function usPerJob(pids: Readonly<Record<string, number | undefined>>): () => Figures {
  const seconds = () =>
    Object.entries(pids).map(([name, pid]) => ({ name, spent: pid ? secondsOf([pid]) : Number.NaN }));
  const before = seconds();
  return () =>
    Object.fromEntries(seconds().map(({ name, spent }, n) => [name, ((spent - (before[n]?.spent ?? 0)) * 1e6) / JOBS]));
}

export const crowdOfTenants: Part = {
  title: `Drain of ${JOBS.toLocaleString("en")} notifications of one tenant and of ten thousand`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "drain", subject: MANY, against: ONE, atLeast: 0.9 }],
  cases: (world) =>
    Object.entries(COUNTS).map(([subject, count]) => ({
      variant: "drain",
      subject,
      settings: "defaults, all roles, full record",
      async prepare() {
        const { databaseUrl } = world;
        const adapter = carillonAdapter(databaseUrl);
        await adapter.clear();
        const producer = await adapter.open();
        await producer.batch(0, 1)();
        await producer.close();
        await makeTenants(databaseUrl, `select 'tenant-' || i from generate_series(0, ${count - 1}) i`);
        await fill(databaseUrl);
        await countAccepted(databaseUrl);
        await settleStore(databaseUrl);
        const pool = await startWorkers("carillon", "throughput", world, 1);
        return {
          processes: pool.processes,
          async measure() {
            // What it takes to start is nobody's notification.
            await pool.go();
            const close = usPerJob({ postgresUs: world.servers.postgres, workerUs: pool.processes["worker 1"] });
            const perSecond = await drain({ ...pool, go: async () => {} }, JOBS, adapter.remaining);
            return { perSecond, ...close() };
          },
          async finish() {
            await pool.stop();
            await adapter.clear();
          },
        };
      },
    })),
};
