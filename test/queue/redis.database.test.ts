// The queue with Redis beside it passes the suite of all engines.

import { after } from "node:test";
import { createRedisEngine } from "#queue/redis/engine.ts";
import { openRedis, script } from "#wire/redis.ts";
import { queueConformance } from "../conformance/queue.ts";
import { setUpQueue } from "../support/queue-on-postgres.ts";
import { startRedis, tell } from "../support/servers/redis.ts";
import { until } from "../support/until.ts";

const server = await startRedis();

if (server) {
  after(() => server.stop());
  queueConformance("redis", async () => {
    const open = async () => {
      const redis = await openRedis({ url: server.url, prefix: "q" }, "a test", { away: () => {}, back: () => {} });
      await until(() => redis.run(script("return 'yes'"), [redis.key("ready")], []).catch(() => undefined));
      return redis;
    };
    const [one, other] = [await open(), await open()];
    const harness = await setUpQueue({
      engines: [createRedisEngine({ redis: one }), createRedisEngine({ redis: other })],
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
}
