// Where limits are kept: in PostgreSQL, or in Redis where the settings say so.

import type { Config } from "#config/read.ts";
import type { Limit } from "#guards/limit/limit.ts";
import { createPostgresLimit } from "#guards/limit/postgres.ts";
import { createRedisLimit } from "#guards/limit/redis.ts";
import type { Database } from "#store/connection/database.ts";
import type { Logger } from "#telemetry/log.ts";
import { createRedisFacts } from "#telemetry/redis-facts.ts";
import { openRedis, type Redis } from "#wire/redis.ts";
import type { Stop } from "./undo.ts";

export async function openLimit(
  { limitsIn, redisUrl, redisPrefix }: Config,
  database: Database,
  log: Logger,
  undo: Stop[],
): Promise<{ limit: Limit; redis: Redis | undefined }> {
  if (limitsIn === "postgres" || redisUrl === undefined)
    return { limit: createPostgresLimit(database.own), redis: undefined };
  const settings = { url: redisUrl, prefix: redisPrefix };
  const redis = await openRedis(
    settings,
    "CARILLON_LIMITS_IN=redis",
    createRedisFacts(log, "what is under a limit waits until it is back"),
  );
  undo.push(redis.close);
  return { limit: createRedisLimit(redis), redis };
}
