// Who is compared where engines are: Carillon with its ready work in each of them, and BullMQ on the same Redis.

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import { PRIORITIES } from "../../../src/domain/priority.ts";
import type { Engine } from "../../../src/queue/engine.ts";
import { createRedisEngine } from "../../../src/queue/redis/engine.ts";
import type { Queryable } from "../../../src/store/connection/database.ts";
import { migrate } from "../../../src/store/connection/migrate.ts";
import { openRedis, script } from "../../../src/wire/redis.ts";
import { openSqs, type Sqs } from "../../../src/wire/sqs.ts";
import type { Adapter } from "../../adapters/adapter.ts";
import { bullmqAdapter } from "../../adapters/bullmq.ts";
import { carillonAdapter, clearCarillon } from "../../adapters/carillon.ts";
import { startProgram } from "../../program.ts";
import type { World } from "../../scenario.ts";
import { runSql } from "../../sql.ts";
import { startWorkers, type WorkerPool } from "../../worker-pool.ts";
import type { WorkerSettings } from "../../workers/worker.ts";

export type EngineName = "postgres" | "redis" | "sqs";

export type Subject = {
  name: string;
  settings: string;
  /** The stores empty, and the engine in use until it is stopped. */
  start(): Promise<Started>;
};

export type Started = {
  adapter: Adapter;
  startWorkers(settings: WorkerSettings): Promise<WorkerPool>;
  /** Process ids of what was started for it, by name. */
  processes: Readonly<Record<string, number>>;
  stop(): Promise<void>;
};

const YES = script("return 1");
const REDIS_PREFIX = "bench";
const SQS_SERVER = fileURLToPath(new URL("../../sqs-server.ts", import.meta.url));
const SQS_KEYS = { accessKeyId: "bench", secretAccessKey: "a-word-for-benchmarks" };
const SQS_REGION = "us-east-1";
/** As SQS is within a region. */
const SQS_AWAY_MS = 10;

export const choose = (databaseUrl: string, name: EngineName): Promise<unknown> =>
  runSql(databaseUrl, `select carillon.queue_choose('${name}')`);

export async function clearStores(world: World): Promise<void> {
  await clearCarillon(world.databaseUrl);
  if (!world.redisUrl) return;
  const redis = new Redis(world.redisUrl);
  await redis.flushall();
  redis.disconnect();
}

/** Looked at whole, as it gives nothing before. */
export async function openRedisEngine(
  world: World,
  db: Queryable,
): Promise<{ engine: Engine; close(): Promise<void> }> {
  if (!world.redisUrl) throw new Error("no Redis");
  const watch = { away: () => undefined, back: () => undefined };
  const redis = await openRedis({ url: world.redisUrl, prefix: REDIS_PREFIX }, "the benchmark", watch);
  // It says how it stands before it runs scripts.
  while ((await redis.run(YES, [redis.key("ready")], []).catch(() => undefined)) === undefined) await sleep(10);
  const engine = createRedisEngine({ redis });
  for await (const _ of engine.tend(db, 1000));
  return { engine, close: redis.close };
}

export type SqsServer = {
  sqs: Sqs;
  pid: number;
  /** What Carillon is to be told of it. */
  variables: Readonly<Record<string, string>>;
  /** From now on every answer takes as long as it would within a region. */
  moveAway(): void;
  stop(): Promise<void>;
};

/** With a queue for each lane. */
export async function startSqs(): Promise<SqsServer> {
  const server = await startProgram(process.execPath, [SQS_SERVER], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const [{ port }] = (await once(server.child, "message")) as [{ port: number }];
  const endpoint = `http://127.0.0.1:${port}`;
  const sqs = openSqs({ endpoint, region: SQS_REGION, credentials: { kind: "keys", keys: SQS_KEYS } });
  for (const lane of PRIORITIES) await sqs.ask("CreateQueue", { QueueName: `bench-${lane}` });
  return {
    sqs,
    pid: server.pid,
    variables: {
      CARILLON_SQS_ENDPOINT: endpoint,
      CARILLON_SQS_PREFIX: "bench",
      CARILLON_SQS_ACCESS_KEY_ID: SQS_KEYS.accessKeyId,
      CARILLON_SQS_SECRET_ACCESS_KEY: SQS_KEYS.secretAccessKey,
    },
    moveAway: () => void server.child.send(SQS_AWAY_MS),
    async stop() {
      await sqs.close();
      await server.stop();
    },
  };
}

async function prepareRedis(world: World): Promise<Readonly<Record<string, string>>> {
  const db = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
  const { close } = await openRedisEngine(world, db);
  await close();
  await db.end();
  return { CARILLON_REDIS_URL: world.redisUrl ?? "", CARILLON_REDIS_PREFIX: REDIS_PREFIX };
}

/** Only who can reach an engine hands over to it, so the settings are those of the library and of the workers. */
export const carillonOn = (world: World, name: EngineName): Subject => ({
  name: `carillon on ${name === "sqs" ? "SQS" : name}`,
  settings: `defaults, all roles, full record${name === "sqs" ? `; SQS ${SQS_AWAY_MS} ms away` : ""}`,
  async start() {
    await clearStores(world);
    await migrate(world.databaseUrl);
    const server = name === "sqs" ? await startSqs() : undefined;
    const variables = name === "redis" ? await prepareRedis(world) : (server?.variables ?? {});
    server?.moveAway();
    await choose(world.databaseUrl, name);
    Object.assign(process.env, variables);
    return {
      adapter: carillonAdapter(world.databaseUrl),
      startWorkers: (settings) => startWorkers("carillon", settings, world, 1),
      processes: server ? { sqs: server.pid } : {},
      async stop() {
        for (const variable of Object.keys(variables)) delete process.env[variable];
        await server?.stop();
        await clearStores(world);
      },
    };
  },
});

const bullmq = (world: World, redisUrl: string): Subject => {
  const adapter = bullmqAdapter(redisUrl);
  return {
    name: adapter.name,
    settings: "concurrency 200; jobs deleted",
    async start() {
      await clearStores(world);
      return {
        adapter,
        startWorkers: (settings) => startWorkers(adapter.name, settings, world, 1),
        processes: {},
        stop: () => clearStores(world),
      };
    },
  };
};

export const subjectsIn = (world: World, engines: readonly EngineName[]): Subject[] => [
  ...engines.filter((name) => name !== "redis" || world.redisUrl).map((name) => carillonOn(world, name)),
  ...(world.redisUrl ? [bullmq(world, world.redisUrl)] : []),
];
