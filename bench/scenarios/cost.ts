// What a notification costs: processor time, log bytes and commits, from accepting to the record of its sending.
//
// Made to compare two versions of Carillon: processor time hardly depends on what else the machine does, log bytes and commits not
// at all. Run it in a checkout of each, in turn. Every statement of ours is a commit of its own, so commits count statements.
//
// Measured is what a process goes on costing: in its first seconds it costs half as much again, mostly for V8's compiling.

import { setTimeout as sleep } from "node:timers/promises";
import { carillonAdapter } from "../adapters/carillon.ts";
import { secondsOf } from "../cpu.ts";
import { inBatches } from "../drain.ts";
import type { Figures, Scenario, World } from "../scenario.ts";
import { runSql, settleStore } from "../sql.ts";
import { startWorkers } from "../worker-pool.ts";

const JOBS = 300_000;
/** Before that, not measured. */
const WARM = 100_000;

type Spent = { seconds: number; ofPostgres: number; logBytes: number; commits: number };

async function spent({ databaseUrl, servers }: World, workers: readonly number[]): Promise<Spent> {
  const [row] = await runSql<{ bytes: string; commits: string }>(
    databaseUrl,
    `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes, xact_commit as commits
     from pg_stat_database where datname = current_database()`,
  );
  const pids = [...Object.values(servers), ...workers];
  const ofPostgres = secondsOf(Object.values(servers));
  return { seconds: secondsOf(pids), ofPostgres, logBytes: Number(row?.bytes), commits: Number(row?.commits) };
}

/** The statistics of connections that are still open come late; and what follows the feed has counted all by then. */
const settled = () => sleep(1_200);

/** Commits are counted from the start, as how many there were is not known to the moment. */
const perJob = (start: Spent, warm: Spent, after: Spent): Figures => ({
  cpuMicroseconds: ((after.seconds - warm.seconds) * 1e6) / JOBS,
  postgresMicroseconds: ((after.ofPostgres - warm.ofPostgres) * 1e6) / JOBS,
  logBytes: (after.logBytes - warm.logBytes) / JOBS,
  commits: ((after.commits - start.commits) * 1000) / (WARM + JOBS),
});

export const cost: Scenario = {
  summary: "processor time, log bytes and commits of a notification, to compare two versions",
  parts: {
    walk: {
      title: `${JOBS.toLocaleString("en")} notifications; commits are per thousand`,
      figure: { name: "cpuMicroseconds", unit: " µs" },
      targets: [],
      cases: (world) => {
        const adapter = carillonAdapter(world.databaseUrl);
        return [
          {
            variant: "accept",
            subject: "carillon",
            settings: "sendBatch of 1,000, two under way; the bench's own time counts",
            async prepare() {
              await adapter.clear();
              const producer = await adapter.open();
              await producer.batch(JOBS, 1)();
              await settleStore(world.databaseUrl);
              return {
                async measure() {
                  const batch = (from: number, size: number) => producer.batch(from, size)();
                  const start = await spent(world, [process.pid]);
                  await inBatches(WARM, batch);
                  const warm = await spent(world, [process.pid]);
                  await inBatches(JOBS, batch);
                  await settled();
                  return perJob(start, warm, await spent(world, [process.pid]));
                },
                async finish() {
                  await producer.close();
                  await adapter.clear();
                },
              };
            },
          },
          {
            variant: "deliver",
            subject: "carillon",
            settings: "one process, all roles, handlers that do nothing",
            async prepare() {
              await adapter.clear();
              const producer = await adapter.open();
              await producer.batch(WARM, 1)();
              await inBatches(WARM + JOBS, (from, size) => producer.batch(from, size)());
              await producer.close();
              await settleStore(world.databaseUrl);
              const pool = await startWorkers(adapter.name, "throughput", world, 1);
              const pids = Object.values(pool.processes);
              return {
                processes: pool.processes,
                async measure() {
                  const start = await spent(world, pids);
                  await pool.go();
                  while (pool.count() < WARM) await sleep(1);
                  const warm = await spent(world, pids);
                  while (pool.count() < WARM + JOBS || (await adapter.remaining()) > 0) await sleep(10);
                  await settled();
                  return perJob(start, warm, await spent(world, pids));
                },
                async finish() {
                  await pool.stop();
                  await adapter.clear();
                },
              };
            },
          },
        ];
      },
    },
  },
};
