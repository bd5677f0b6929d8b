// How late jobs begin that are due one after the other, beside few and beside many that wait for days to come.

import type { Adapter } from "../../adapters/adapter.ts";
import { createDues, machineNow } from "../../payload.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { adaptersIn } from "../drain.ts";
import { fillFarLater, handOver, latenessOf, leadMs, PUNCTUAL, pause } from "./later.ts";

const JOBS = 5_000;
const SECONDS = 30;
/** A second of them, not measured. */
const WARM_UP = Math.ceil(JOBS / SECONDS);
const EVERY_MS = (SECONDS * 1_000) / JOBS;

const FEW = 10_000;
const MANY = 1_000_000;
const VERY_MANY = 10_000_000;
const nameOf = (waiting: number): string => `${waiting.toLocaleString("en")} waiting`;

function caseOf(world: World, adapter: Adapter, waiting: number): Case {
  return {
    variant: adapter.name,
    subject: nameOf(waiting),
    settings: PUNCTUAL[adapter.name] ?? "",
    isOnce: waiting === VERY_MANY,
    async prepare() {
      await adapter.clear();
      const producer = await adapter.open();
      await fillFarLater(producer, JOBS + WARM_UP, JOBS + WARM_UP + waiting);
      await settleStore(world.databaseUrl);
      const pool = await startWorkers(adapter.name, "punctuality", world, 1);
      return {
        processes: pool.processes,
        async measure() {
          await pool.go();
          const dueAt = createDues();
          const firstAt = machineNow() + leadMs(JOBS);
          const dues = Array.from({ length: WARM_UP + JOBS }, (_, i) => {
            const due = dueAt(firstAt + i * EVERY_MS);
            return i < WARM_UP ? { ...due, at: 0 } : due;
          });
          await handOver(producer, dues, firstAt);
          while (pool.count() < dues.length) await pause(5);
          return latenessOf(await pool.stop());
        },
        async finish() {
          await producer.close();
          await adapter.clear();
        },
      };
    },
  };
}

const ofCarillon = (waiting: number) => ({ variant: "carillon", subject: nameOf(waiting) });

export const lateness: Part = {
  title: `How late ${JOBS.toLocaleString("en")} jobs begin that are due evenly over ${SECONDS} s, 99th percentile`,
  figure: { name: "p99Ms", unit: " ms" },
  targets: [
    ...[FEW, MANY, VERY_MANY].map((waiting) => ({ ...ofCarillon(waiting), limits: { p99Ms: 100 } })),
    // Where a few stragglers make the 99th percentile, the median says whether the size matters.
    ...["p99Ms", "p50Ms"].map((figure) => ({ ...ofCarillon(MANY), against: nameOf(FEW), figure, atMost: 1.2 })),
  ],
  cases: (world) =>
    adaptersIn(world).flatMap((adapter) => {
      const sizes = adapter.name === "carillon" && world.withMany ? [FEW, MANY, VERY_MANY] : [FEW, MANY];
      return sizes.map((waiting) => caseOf(world, adapter, waiting));
    }),
};
