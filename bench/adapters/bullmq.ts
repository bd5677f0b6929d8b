// BullMQ on Redis, through add and addBulk.

import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { type MixedJob, payload } from "../payload.ts";
import type { Adapter } from "./adapter.ts";

const QUEUE = "noop";

export function bullmqAdapter(redisUrl: string): Adapter {
  const withQueue = async <Value>(use: (queue: Queue) => Promise<Value>): Promise<Value> => {
    const { queue, close } = openQueue(redisUrl);
    return use(queue).finally(close);
  };
  const held = async () => {
    const counts = await withQueue((queue) => queue.getJobCounts("wait", "prioritized", "active", "delayed"));
    return Object.values(counts).reduce((sum, n) => sum + n, 0);
  };
  return {
    name: "BullMQ",
    settings: "attempts 3, auto-pipelining off; Redis appendonly, fsync every second",
    clear: () => withQueue((queue) => queue.obliterate({ force: true })),
    async open() {
      const { queue, close } = openQueue(redisUrl);
      await queue.waitUntilReady();
      return {
        one: (i, at) => queue.add("noop", payload(i, at)),
        batch(from, size) {
          const jobs = Array.from({ length: size }, (_, k) => ({ name: "noop", data: payload(from + k) }));
          return () => queue.addBulk(jobs);
        },
        later: (i, { wallMs, at }) => queue.add("noop", payload(i, at), delayUntil(wallMs)),
        batchLater: (from, dues) =>
          queue.addBulk(
            dues.map(({ wallMs, at }, k) => ({
              name: "noop",
              data: payload(from + k, at),
              opts: delayUntil(wallMs),
            })),
          ),
        mixed: (jobs) => queue.addBulk(jobs.map(jobOf)),
        close,
      };
    },
    stored: held,
    remaining: held,
  };
}

/** A smaller number goes first. Groups of tenants are of BullMQ Pro: here all tenants share the queue. */
const jobOf = ({ at, takesMs, isUrgent }: MixedJob) => ({
  name: "noop",
  data: payload(0, at, takesMs),
  opts: { priority: isUrgent ? 1 : 10 },
});

/** Both, as it adds the one to the other: the instant is then exact. */
function delayUntil(wallMs: number): { timestamp: number; delay: number } {
  const timestamp = Date.now();
  return { timestamp, delay: Math.max(0, wallMs - timestamp) };
}

function openQueue(redisUrl: string): { queue: Queue; close(): Promise<void> } {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: { attempts: 3 } });
  return {
    queue,
    async close() {
      await queue.close();
      connection.disconnect();
    },
  };
}
