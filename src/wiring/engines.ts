// Where ready work may wait besides PostgreSQL: every engine that the settings lead to. Which of them has what is accepted from now on stands in the
// database, so that all processes go over at one instant.

import type { Config } from "#config/read.ts";
import type { EngineName, Handoff } from "#domain/handoff.ts";
import type { Engine } from "#queue/engine.ts";
import { bringHome } from "#queue/postgres/handoffs.ts";
import { createRedisEngine } from "#queue/redis/engine.ts";
import type { Database } from "#store/connection/database.ts";
import type { Logger } from "#telemetry/log.ts";
import { createRedisFacts } from "#telemetry/redis-facts.ts";
import { openRedis } from "#wire/redis.ts";
import type { Stop } from "./undo.ts";

export type Engines = {
  engines: readonly Engine[];
  names: readonly EngineName[];
  /** What was committed. It never rejects: what could not be offered now is offered by the keeper. */
  offer(handed: readonly Handoff[]): Promise<void>;
};

export async function openEngines(
  { redisUrl, redisPrefix }: Pick<Config, "redisUrl" | "redisPrefix">,
  database: Database,
  log: Logger,
  undo: Stop[],
): Promise<Engines | undefined> {
  if (redisUrl === undefined) return undefined;
  const watch = createRedisFacts(log, "what waits there is not claimed until it is back");
  const redis = await openRedis({ url: redisUrl, prefix: redisPrefix }, "CARILLON_REDIS_URL", watch);
  undo.push(redis.close);
  const engines: Engine[] = [createRedisEngine({ redis })];
  return {
    engines,
    names: engines.map(({ name }) => name),
    async offer(handed) {
      try {
        for (const engine of engines) await bringHome(database.own, await engine.offer(handed));
      } catch {
        // It is away, which is told elsewhere.
      }
    },
  };
}
