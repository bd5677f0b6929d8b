// pg-boss: large batches for throughput; for latency LISTEN/NOTIFY and smaller ones. Only polling finds what has become
// due; half a second is the least it allows, and with LISTEN/NOTIFY it would be 30.

import { PgBoss } from "pg-boss";
import type { StartWorker } from "./worker.ts";

export const startPgBoss: StartWorker = async ({ databaseUrl }, settings, onJob) => {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    max: 10,
    supervise: false,
    schedule: false,
    useListenNotify: settings === "latency",
  });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  const options =
    settings === "throughput" || settings === "burst"
      ? { batchSize: 2500, localConcurrency: 2 }
      : { batchSize: 100, localConcurrency: 1 };
  await boss.work("noop", { ...options, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }, async (jobs) => {
    for (const { data } of jobs) onJob(data.at);
  });
  return { stop: () => boss.stop({ graceful: true, timeout: 5000 }) };
};
