// How fast workers deliver what is waiting, beside the peers at the best settings found for them.

import type { Adapter } from "../adapters/adapter.ts";
import { bullmqAdapter } from "../adapters/bullmq.ts";
import { carillonAdapter } from "../adapters/carillon.ts";
import { graphileWorkerAdapter } from "../adapters/graphile-worker.ts";
import { pgBossAdapter } from "../adapters/pg-boss.ts";
import { fill, drain as measureDrain } from "../drain.ts";
import type { Part, Scenario, World } from "../scenario.ts";
import { settleStore } from "../sql.ts";
import { startWorkers } from "../worker-pool.ts";

const JOBS = 50_000;
/** Long enough for a process to be warm most of the time; only ours and the fastest of the others. */
const MANY_JOBS = 250_000;
const LONG_SUBJECTS = ["carillon", "graphile-worker"];

const SETTINGS: Readonly<Record<string, string>> = {
  carillon: "defaults, all roles, full record",
  "graphile-worker": "localQueue 2000, batched completion, 500 jobs, pool 10; jobs deleted",
  "pg-boss": "batchSize 2500, 2 workers, burst; completed jobs kept in its table",
  BullMQ: "concurrency 200; jobs deleted",
};

export const adaptersIn = ({ databaseUrl, redisUrl }: World): Adapter[] => [
  carillonAdapter(databaseUrl),
  graphileWorkerAdapter(databaseUrl),
  pgBossAdapter(databaseUrl),
  ...(redisUrl ? [bullmqAdapter(redisUrl)] : []),
];

const part = (processes: number, targets: Part["targets"], jobs = JOBS, subjects?: string[]): Part => ({
  title: `Drain of ${jobs.toLocaleString("en")} jobs, handlers that do nothing, ${processes} process${processes > 1 ? "es" : ""}`,
  figure: { name: "perSecond", unit: "/s" },
  targets,
  cases: (world) =>
    adaptersIn(world)
      .filter(({ name }) => subjects?.includes(name) ?? true)
      .map((adapter) => ({
        variant: "drain",
        subject: adapter.name,
        settings: SETTINGS[adapter.name] ?? "",
        async prepare() {
          await adapter.clear();
          await fill(adapter, jobs);
          await settleStore(world.databaseUrl);
          const pool = await startWorkers(adapter.name, "throughput", world, processes);
          return {
            processes: pool.processes,
            measure: async () => ({ perSecond: await measureDrain(pool, jobs, adapter.remaining) }),
            async finish() {
              await pool.stop();
              await adapter.clear();
            },
          };
        },
      })),
});

export const drain: Scenario = {
  summary: "deliver what is waiting, in one process and in two, cold and warm",
  parts: {
    one: part(1, [
      { variant: "drain", subject: "carillon", against: "graphile-worker", atLeast: 1.5 },
      { variant: "drain", subject: "carillon", against: "BullMQ", atLeast: 2.5 },
    ]),
    two: part(2, [{ variant: "drain", subject: "carillon", against: "graphile-worker", atLeast: 1.2 }]),
    "long-one": part(
      1,
      [{ variant: "drain", subject: "carillon", against: "graphile-worker", atLeast: 1.5 }],
      MANY_JOBS,
      LONG_SUBJECTS,
    ),
    "long-two": part(
      2,
      [{ variant: "drain", subject: "carillon", against: "graphile-worker", atLeast: 1.2 }],
      MANY_JOBS,
      LONG_SUBJECTS,
    ),
  },
};
