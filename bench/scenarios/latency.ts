// How soon an idle worker in another process begins with a job.

import type { Producer } from "../adapters/adapter.ts";
import { pgBossAdapter } from "../adapters/pg-boss.ts";
import { machineNow } from "../payload.ts";
import type { Figures, Scenario } from "../scenario.ts";
import { settleStore } from "../sql.ts";
import { quantile } from "../statistics.ts";
import { startWorkers, type WorkerPool } from "../worker-pool.ts";
import { adaptersIn } from "./drain.ts";

const JOBS = 500;
const EVERY_MS = 20;
const WARM_UP = 20;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const SETTINGS: Readonly<Record<string, string>> = {
  carillon: "defaults",
  "graphile-worker": "without local queue, 24 jobs: its quickest",
  "pg-boss": "LISTEN/NOTIFY, batchSize 100",
  BullMQ: "concurrency 200",
};

/** One every so often, while there is nothing else to do. */
export async function measureIdle(producer: Producer, pool: WorkerPool): Promise<Figures> {
  await pool.go();
  for (let i = 1; i <= WARM_UP; i++) {
    await producer.one(i);
    await pause(EVERY_MS);
  }
  const begin = machineNow();
  const sends: Promise<unknown>[] = [];
  for (let i = 0; i < JOBS; i++) {
    await pause(Math.max(0, begin + i * EVERY_MS - machineNow()));
    sends.push(producer.one(WARM_UP + 1 + i, machineNow()));
  }
  await Promise.all(sends);
  while (pool.count() < WARM_UP + 1 + JOBS) await pause(5);
  const latencies = await pool.stop();
  return { p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99), maxMs: Math.max(...latencies) };
}

export const latency: Scenario = {
  summary: "from handing over to the handler, on an idle system, across processes",
  parts: {
    idle: {
      title: `${JOBS} jobs, one every ${EVERY_MS} ms, from send() in one process to the handler in another`,
      figure: { name: "p50Ms", unit: " ms" },
      // Quick enough in itself, or no worse than graphile-worker in both figures.
      targets: ["p50Ms", "p99Ms"].map((figure) => ({
        variant: "idle",
        subject: "carillon",
        against: "graphile-worker",
        figure,
        atMost: 1,
        limits: { p50Ms: 5, p99Ms: 20 },
      })),
      cases: (world) =>
        adaptersIn(world)
          .map((adapter) => (adapter.name === "pg-boss" ? pgBossAdapter(world.databaseUrl, { notify: true }) : adapter))
          .map((adapter) => ({
            variant: "idle",
            subject: adapter.name,
            settings: SETTINGS[adapter.name] ?? "",
            async prepare() {
              await adapter.clear();
              const producer = await adapter.open();
              await producer.batch(0, 1)();
              await settleStore(world.databaseUrl);
              const pool = await startWorkers(adapter.name, "latency", world, 1);
              return {
                processes: pool.processes,
                measure: () => measureIdle(producer, pool),
                async finish() {
                  await producer.close();
                  await adapter.clear();
                },
              };
            },
          })),
    },
  },
};
