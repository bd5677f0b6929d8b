// The Redis engine on a real server.

import { createRedisEngine, type RedisEngineOptions } from "#queue/redis/engine.ts";
import { openRedis, script } from "#wire/redis.ts";
import { until } from "./until.ts";

const YES = script("return 'yes'");

export async function openRedisEngine(url: string, more: Omit<RedisEngineOptions, "redis"> = {}) {
  const redis = await openRedis({ url, prefix: "q" }, "a test", { away: () => undefined, back: () => undefined });
  /** It says how it stands before it runs scripts. */
  const ready = () => until(() => redis.run(YES, [redis.key("ready")], []).catch(() => undefined));
  await ready();
  return { engine: createRedisEngine({ redis, ...more }), redis, ready, close: () => redis.close() };
}
