// pg-boss: large batches for throughput; for latency LISTEN/NOTIFY and smaller ones. Only polling finds what has become
// due; half a second is the least it allows, and with LISTEN/NOTIFY it would be 30.

import { PgBoss } from "pg-boss";
import { URGENT } from "../adapters/pg-boss.ts";
import { SLOTS, type StartWorker, worked } from "./worker.ts";

/** Of the slots, those that only urgent jobs may use: it has a setting for that. */
const RESERVE = 26;
/** With batches of one it fetches every half second, however much waits; with two it goes on at once while they come back full. */
const BATCH = 2;
/** What one tenant may have under way, so that there is room for others. */
const TENANT_SHARE = 50;

export const startPgBoss: StartWorker = async ({ databaseUrl }, settings, onJob) => {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    max: 10,
    supervise: false,
    schedule: false,
    useListenNotify: settings === "latency" || settings === "isolation",
  });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  if (settings === "isolation") {
    const work = (slots: number, more: object) =>
      boss.work(
        "noop",
        {
          batchSize: BATCH,
          localConcurrency: slots / BATCH,
          pollingIntervalSeconds: 0.5,
          burstWhenBatchFull: true,
          ...more,
        },
        async (jobs) => void (await Promise.all(jobs.map(({ data }) => worked(data, onJob)))),
      );
    await work(SLOTS - RESERVE, { localGroupConcurrency: TENANT_SHARE });
    await work(RESERVE, { minPriority: URGENT });
    return { stop: () => boss.stop({ graceful: false }) };
  }
  const options =
    settings === "throughput" || settings === "burst"
      ? { batchSize: 2500, localConcurrency: 2 }
      : { batchSize: 100, localConcurrency: 1 };
  await boss.work("noop", { ...options, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }, async (jobs) => {
    for (const { data } of jobs) onJob(data.at);
  });
  return { stop: () => boss.stop({ graceful: true, timeout: 5000 }) };
};
