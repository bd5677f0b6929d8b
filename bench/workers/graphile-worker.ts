// graphile-worker: the best settings found for throughput; for latency also without its local queue. Only polling finds
// what has become due, so where that matters it polls more often than its two seconds.

import { Logger, run } from "graphile-worker";
import { SLOTS, type StartWorker, worked } from "./worker.ts";

/** With 100 the 99th percentile of lateness was 100 ms, with 10 it was 12; an idle worker then costs half a core. */
const POLL_MS = 10;
const logger = new Logger(() => () => {});

export const startGraphileWorker: StartWorker = ({ databaseUrl }, settings, onJob) =>
  run({
    taskList: { noop: (job) => worked(job, onJob) },
    preset: {
      worker: {
        connectionString: databaseUrl,
        logger,
        ...((settings === "punctuality" || settings === "burst") && { pollInterval: POLL_MS }),
        ...(settings === "throughput" || settings === "burst"
          ? {
              concurrentJobs: 500,
              maxPoolSize: 10,
              localQueue: { size: 2000 },
              completeJobBatchDelay: 0,
              failJobBatchDelay: 0,
            }
          : {
              concurrentJobs: settings === "isolation" ? SLOTS : 24,
              maxPoolSize: 25,
              localQueue: { size: -1 },
              completeJobBatchDelay: -1,
              failJobBatchDelay: -1,
            }),
      },
    },
    noHandleSignals: true,
    parsedCronItems: [],
  });
