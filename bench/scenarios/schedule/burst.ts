// Many jobs due at one instant, beside as many that are ready anyway.

import type { Adapter } from "../../adapters/adapter.ts";
import { drain, fill, inBatches } from "../../drain.ts";
import { createDues, machineNow } from "../../payload.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { adaptersIn } from "../drain.ts";
import { handOver, leadMs, pause } from "./later.ts";

const JOBS = 50_000;
/** As many as drain() leaves out of account, so that both begin with a worker that is warm. */
const WARM_UP = JOBS / 10;
/** And just before: after 20 s of idleness ours was slower at first. */
const WARM_UP_AHEAD_MS = 5_000;

const AT_ONCE = "due at one instant";
const READY = "ready";

const SETTINGS: Readonly<Record<string, string>> = {
  carillon: "defaults, all roles, full record",
  "graphile-worker": "localQueue 2000, batched completion, 500 jobs, pool 10, polling every 10 ms",
  "pg-boss": "batchSize 2500, 2 workers, burst, polling every 500 ms, its least",
  BullMQ: "concurrency 200; Redis hz 100",
};

function ready(world: World, adapter: Adapter): Case {
  return {
    variant: adapter.name,
    subject: READY,
    settings: SETTINGS[adapter.name] ?? "",
    async prepare() {
      await adapter.clear();
      await fill(adapter, JOBS);
      await settleStore(world.databaseUrl);
      const pool = await startWorkers(adapter.name, "burst", world, 1);
      return {
        processes: pool.processes,
        // Until the last has begun, as below.
        measure: async () => ({ perSecond: await drain(pool, JOBS, undefined) }),
        async finish() {
          await pool.stop();
          await adapter.clear();
        },
      };
    },
  };
}

function atOnce(world: World, adapter: Adapter): Case {
  return {
    variant: adapter.name,
    subject: AT_ONCE,
    settings: SETTINGS[adapter.name] ?? "",
    async prepare() {
      await adapter.clear();
      const producer = await adapter.open();
      await producer.one(0);
      const pool = await startWorkers(adapter.name, "burst", world, 1);
      return {
        processes: pool.processes,
        async measure() {
          const due = createDues()(machineNow() + leadMs(JOBS));
          const dues = Array.from({ length: JOBS }, () => due);
          await handOver(producer, dues, due.at);
          await settleStore(world.databaseUrl);
          await pool.go();
          await pause(Math.max(0, due.at - WARM_UP_AHEAD_MS - machineNow()));
          await inBatches(WARM_UP, (from, size) => producer.batch(JOBS + from, size)());
          while (pool.count() < 1 + WARM_UP) await pause(2);
          if (machineNow() > due.at - 1_000) throw new Error("the instant came before the worker was warm");
          while (pool.count() < 1 + WARM_UP + JOBS) await pause(2);
          return { perSecond: JOBS / ((pool.lastAt() - due.at) / 1000) };
        },
        async finish() {
          await pool.stop();
          await producer.close();
          await adapter.clear();
        },
      };
    },
  };
}

export const burst: Part = {
  title: `${JOBS.toLocaleString("en")} jobs due at one instant: begun per second from that instant to the last`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "carillon", subject: AT_ONCE, against: READY, atLeast: 0.9 }],
  cases: (world) => adaptersIn(world).flatMap((adapter) => [ready(world, adapter), atOnce(world, adapter)]),
};
