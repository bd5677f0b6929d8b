// Where ready work may wait besides PostgreSQL: every engine that the settings lead to. Which of them has what is accepted from now on stands in the
// database, so that all processes go over at one instant.

import type { Config } from "#config/read.ts";
import type { EngineName, Handoff } from "#domain/handoff.ts";
import { priorityOf } from "#domain/priority.ts";
import type { Engine } from "#queue/engine.ts";
import { bringHome } from "#queue/postgres/handoffs.ts";
import { createRedisEngine } from "#queue/redis/engine.ts";
import { createSqsEngine } from "#queue/sqs/engine.ts";
import { createQueues } from "#queue/sqs/queues.ts";
import type { Database } from "#store/connection/database.ts";
import { createReadyHint } from "#store/connection/hint.ts";
import type { Logger } from "#telemetry/log.ts";
import { createComings, createRedisFacts } from "#telemetry/redis-facts.ts";
import { UnmetNeed } from "#wire/optional.ts";
import { openRedis } from "#wire/redis.ts";
import { openSqs, SqsError, type SqsSettings } from "#wire/sqs.ts";
import type { Stop } from "./undo.ts";

export type Engines = {
  engines: readonly Engine[];
  names: readonly EngineName[];
  /** What was committed. It never rejects: what could not be offered now is offered by the keeper. */
  offer(handed: readonly Handoff[]): Promise<void>;
  /** Whom to wake when one of them has something that it had not before. */
  watch(wake: () => void): void;
};

const MEANING = "what waits there is not claimed until it is back";

export async function openEngines(
  { redisUrl, redisPrefix, sqs }: Pick<Config, "redisUrl" | "redisPrefix" | "sqs">,
  database: Database,
  log: Logger,
  undo: Stop[],
): Promise<Engines | undefined> {
  const engines: Engine[] = [];
  if (redisUrl !== undefined) {
    const watch = createRedisFacts(log, MEANING);
    const redis = await openRedis({ url: redisUrl, prefix: redisPrefix }, "CARILLON_REDIS_URL", watch);
    undo.push(redis.close);
    engines.push(createRedisEngine({ redis }));
  }
  if (sqs) engines.push(await openSqsEngine(sqs, database, log, undo));
  if (engines.length === 0) return undefined;
  const underWay = new Set<Promise<void>>();
  undo.push(async () => void (await Promise.all(underWay)));

  async function offer(handed: readonly Handoff[]): Promise<void> {
    try {
      for (const engine of engines) {
        const some = handed.filter((handoff) => handoff.engine === engine.name);
        if (some.length > 0) await bringHome(database.own, await engine.offer(some));
      }
    } catch {
      // It is away, which is told elsewhere.
    }
  }
  return {
    engines,
    names: engines.map(({ name }) => name),
    offer(handed) {
      const offering = offer(handed).finally(() => underWay.delete(offering));
      underWay.add(offering);
      return offering;
    },
    watch(wake) {
      for (const engine of engines) engine.watch?.(wake);
    },
  };
}

/** An SQS that is away is waited for; one that refuses us will go on doing so. */
async function openSqsEngine(settings: SqsSettings, { own: db }: Database, log: Logger, undo: Stop[]): Promise<Engine> {
  const sqs = openSqs(settings);
  undo.push(sqs.close);
  const queues = createQueues(sqs, settings.prefix, {
    watch: createComings(log, "SQS", MEANING),
    monotonic: () => performance.now(),
    random: Math.random,
  });
  await queues.check().catch((error: unknown) => {
    if (!(error instanceof SqsError)) throw error;
    if (!error.isPassing) throw new UnmetNeed(error.message, { cause: error });
  });
  const engine = createSqsEngine({
    queues,
    db,
    monotonic: () => performance.now(),
    onHome: createReadyHint(db),
    onTrouble: (error) =>
      log.warn({ err: error }, "what waits in SQS could not be noted or brought back; it comes again"),
    onForeign: (rank) =>
      log.warn({ lane: priorityOf(rank) }, "there was a message in SQS that is not Carillon's; it was deleted"),
  });
  undo.push(engine.close);
  return engine;
}
