// BullMQ: concurrency 200 is as good as any between 50 and 500; completed jobs are not kept.

import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { SLOTS, type StartWorker, worked } from "./worker.ts";

export const startBullmq: StartWorker = async ({ redisUrl = "" }, settings, onJob) => {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const worker = new Worker("noop", ({ data }) => worked(data, onJob), {
    connection,
    concurrency: settings === "isolation" ? SLOTS : 200,
    removeOnComplete: { count: 0 },
  });
  worker.on("error", (error) => console.error(`BullMQ: ${error.message}`));
  return {
    async stop() {
      await worker.close();
      connection.disconnect();
    },
  };
};
