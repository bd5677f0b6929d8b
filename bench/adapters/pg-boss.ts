// pg-boss, through send and insert.

import { PgBoss } from "pg-boss";
import { payload } from "../payload.ts";
import { count, runSql } from "../sql.ts";
import type { Adapter } from "./adapter.ts";

const QUEUE = "noop";
/** The priority of urgent jobs: what a worker's reserve asks for. */
export const URGENT = 10;

export function pgBossAdapter(databaseUrl: string, { notify = false } = {}): Adapter {
  return {
    name: "pg-boss",
    settings: `pool 10, partitioned queue, notify ${notify ? "on" : "off"}, no supervision, no schedules`,
    async clear() {
      await runSql(databaseUrl, "drop schema if exists pgboss cascade");
    },
    async open() {
      const boss = new PgBoss({ connectionString: databaseUrl, max: 10, supervise: false, schedule: false });
      boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
      await boss.start();
      await boss.createQueue(QUEUE, { partition: true, notify });
      return {
        one: (i, at) => boss.send(QUEUE, payload(i, at)),
        batch(from, size) {
          const jobs = Array.from({ length: size }, (_, k) => ({ data: payload(from + k) }));
          return () => boss.insert(QUEUE, jobs);
        },
        later: (i, { wallMs, at }) => boss.send(QUEUE, payload(i, at), { startAfter: new Date(wallMs) }),
        batchLater: (from, dues) =>
          boss.insert(
            QUEUE,
            dues.map(({ wallMs, at }, k) => ({ data: payload(from + k, at), startAfter: new Date(wallMs) })),
          ),
        // A larger number goes first. The group is what a worker's limits for each tenant go by.
        mixed: (jobs) =>
          boss.insert(
            QUEUE,
            jobs.map(({ at, takesMs, isUrgent, tenant }) => ({
              data: payload(0, at, takesMs),
              priority: isUrgent ? URGENT : 0,
              ...(tenant !== undefined && { group: { id: tenant } }),
            })),
          ),
        close: () => boss.stop({ graceful: false }),
      };
    },
    stored: () => count(databaseUrl, "pgboss.job"),
    remaining: () => count(databaseUrl, "pgboss.job where state < 'completed'"),
  };
}
