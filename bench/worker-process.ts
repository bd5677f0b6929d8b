// One worker process: waits for "go", works, and reports how many jobs it has begun.

import { machineNow } from "./payload.ts";
import { startBullmq } from "./workers/bullmq.ts";
import { startCarillon } from "./workers/carillon.ts";
import { startGraphileWorker } from "./workers/graphile-worker.ts";
import { startPgBoss } from "./workers/pg-boss.ts";
import { type StartWorker, WORKER_SETTINGS } from "./workers/worker.ts";

const STARTS: Readonly<Record<string, StartWorker>> = {
  carillon: startCarillon,
  "graphile-worker": startGraphileWorker,
  "pg-boss": startPgBoss,
  BullMQ: startBullmq,
};
const REPORT_MS = 5;

const [, , name = "", given = "", urls = "{}"] = process.argv;
const start = STARTS[name];
if (!start) throw new Error(`there is no worker ${name}`);
const settings = WORKER_SETTINGS.find((known) => known === given);
if (!settings) throw new Error(`there are no settings ${given}`);

let count = 0;
let lastAt = 0;
let reported = 0;
const latencies: number[] = [];
/** Of the jobs that latencies are of: when they were handed over. */
const handedAts: number[] = [];
const onJob = (at: number) => {
  count++;
  lastAt = machineNow();
  if (at === 0) return;
  latencies.push(lastAt - at);
  handedAts.push(at);
};
let running: Awaited<ReturnType<StartWorker>> | undefined;
process.on("message", async (message) => {
  if (message === "go") {
    running = await start(JSON.parse(urls), settings, onJob);
    setInterval(() => {
      if (count === reported) return;
      reported = count;
      process.send?.({ count, lastAt, measured: latencies.length });
    }, REPORT_MS);
    process.send?.({ isRunning: true });
  }
  // It ends by itself, and may have a profile to write: whoever is told of its end must not cut that short.
  if (message === "stop" || message === "leave") process.on("SIGTERM", () => {});
  if (message === "stop") {
    await running?.stop();
    process.send?.({ count, lastAt, latencies, handedAts }, () => process.exit(0));
  }
  // What is under way is nobody's any more: its store is emptied next.
  if (message === "leave") process.send?.({ count, lastAt, latencies, handedAts }, () => process.exit(0));
});
process.send?.({ isReady: true });
