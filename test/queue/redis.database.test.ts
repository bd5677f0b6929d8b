// The queue with Redis beside it passes the suite of all engines.

import { after, test } from "node:test";
import { queueConformance } from "../conformance/queue.ts";
import { setUpQueue } from "../support/queue-on-postgres.ts";
import { openRedisEngine } from "../support/redis-engine.ts";
import { NO_REDIS, startRedis, tell } from "../support/servers/redis.ts";

const server = await startRedis();

if (server) {
  after(() => server.stop());
  queueConformance("redis", async () => {
    const [one, other] = [await openRedisEngine(server.url), await openRedisEngine(server.url)];
    const harness = await setUpQueue({
      engines: [one.engine, other.engine],
      empty: async () => void (await tell(server.port, "FLUSHALL")),
    });
    return {
      ...harness,
      async stop() {
        await harness.stop();
        await one.close();
        await other.close();
      },
    };
  });
} else test("the queue with Redis beside it", { skip: NO_REDIS }, () => undefined);
