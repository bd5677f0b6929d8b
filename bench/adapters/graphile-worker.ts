// graphile-worker, through addJob and addJobs, and its documented view of all jobs.

import { Logger, makeWorkerUtils } from "graphile-worker";
import { payload } from "../payload.ts";
import { count, runSql } from "../sql.ts";
import type { Adapter } from "./adapter.ts";

const TASK = "noop";
const logger = new Logger(() => () => {});

export function graphileWorkerAdapter(databaseUrl: string): Adapter {
  return {
    name: "graphile-worker",
    settings: "pool 10",
    async clear() {
      await runSql(databaseUrl, "drop schema if exists graphile_worker cascade");
    },
    async open() {
      const utils = await makeWorkerUtils({ connectionString: databaseUrl, maxPoolSize: 10, logger });
      await utils.migrate();
      return {
        one: (i, at) => utils.addJob(TASK, payload(i, at)),
        batch(from, size) {
          const jobs = Array.from({ length: size }, (_, k) => ({ identifier: TASK, payload: payload(from + k) }));
          return () => utils.addJobs(jobs);
        },
        later: (i, { wallMs, at }) => utils.addJob(TASK, payload(i, at), { runAt: new Date(wallMs) }),
        batchLater: (from, dues) =>
          utils.addJobs(
            dues.map(({ wallMs, at }, k) => ({
              identifier: TASK,
              payload: payload(from + k, at),
              runAt: new Date(wallMs),
            })),
          ),
        // A smaller number goes first. Its named queues run one job at a time: no turns between tenants are to be had of them.
        mixed: (jobs) =>
          utils.addJobs(
            jobs.map(({ at, takesMs, isUrgent }) => ({
              identifier: TASK,
              payload: payload(0, at, takesMs),
              priority: isUrgent ? -10 : 0,
            })),
          ),
        close: () => utils.release(),
      };
    },
    stored: () => count(databaseUrl, "graphile_worker.jobs"),
    remaining: () => count(databaseUrl, "graphile_worker.jobs"),
  };
}
