// Something is due soon while the scheduler, in another process, sleeps towards something that is due in an hour.

import { createDues, machineNow } from "../../payload.ts";
import type { Part } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { adaptersIn } from "../drain.ts";
import { latenessOf, PUNCTUAL, pause } from "./later.ts";

const JOBS = 200;
const WARM_UP = 20;
const DUE_IN_MS = 50;
const FALL_ASLEEP_MS = 5_000;
/** Time to fall asleep again, and no divisor of anybody's polling interval: pollers are met at all phases. */
const EVERY_MS = 131;
const HOUR_MS = 3_600_000;

export const reaction: Part = {
  title: `How late ${JOBS} jobs begin, each handed over ${DUE_IN_MS} ms before it is due, to a scheduler that is asleep`,
  figure: { name: "p99Ms", unit: " ms" },
  targets: [{ variant: "asleep", subject: "carillon", limits: { p99Ms: 100 } }],
  cases: (world) =>
    adaptersIn(world).map((adapter) => ({
      variant: "asleep",
      subject: adapter.name,
      settings: PUNCTUAL[adapter.name] ?? "",
      async prepare() {
        await adapter.clear();
        const producer = await adapter.open();
        await producer.later(0, { wallMs: Date.now() + HOUR_MS, at: 0 });
        await settleStore(world.databaseUrl);
        const pool = await startWorkers(adapter.name, "punctuality", world, 1);
        return {
          processes: pool.processes,
          async measure() {
            await pool.go();
            await pause(FALL_ASLEEP_MS);
            const dueAt = createDues();
            const begin = machineNow();
            for (let i = 0; i < WARM_UP + JOBS; i++) {
              await pause(Math.max(0, begin + i * EVERY_MS - machineNow()));
              const due = dueAt(machineNow() + DUE_IN_MS);
              await producer.later(1 + i, i < WARM_UP ? { ...due, at: 0 } : due);
            }
            while (pool.count() < WARM_UP + JOBS) await pause(5);
            return latenessOf(await pool.stop());
          },
          async finish() {
            await producer.close();
            await adapter.clear();
          },
        };
      },
    })),
};
