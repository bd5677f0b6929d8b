// The engines as they are: what PostgreSQL spends on a notification with each, and how fast workers deliver what waits there, beside BullMQ on the same Redis.

import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import type { Handoff } from "../../../src/domain/handoff.ts";
import { createIds } from "../../../src/domain/ids.ts";
import type { Engine } from "../../../src/queue/engine.ts";
import { createPostgresQueue } from "../../../src/queue/postgres/engine.ts";
import { createRedisEngine } from "../../../src/queue/redis/engine.ts";
import { storeAccepted } from "../../../src/record/accept.ts";
import { type Database, openDatabase, type Queryable } from "../../../src/store/connection/database.ts";
import { migrate } from "../../../src/store/connection/migrate.ts";
import { openRedis, script } from "../../../src/wire/redis.ts";
import { bullmqAdapter } from "../../adapters/bullmq.ts";
import { carillonAdapter, clearCarillon } from "../../adapters/carillon.ts";
import { drain, fill } from "../../drain.ts";
import type { Case, Figures, Part, World } from "../../scenario.ts";
import { runSql, settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { rowsFrom, rowsOf, sent, spent } from "./prototype.ts";

const YES = script("return 1");
const CLAIM = 1000;
const JOBS = 50_000;
const NONE = { hasKeys: false, hasRegions: false, hasCallbacks: false };

type EngineName = "postgres" | "redis";

async function tend(engine: Engine, db: Queryable): Promise<void> {
  for await (const _ of engine.tend(db, 1000));
}

const choose = (databaseUrl: string, name: EngineName) =>
  runSql(databaseUrl, `select carillon.queue_choose('${name}')`);

async function engineIn(world: World): Promise<{ engine: Engine; close(): Promise<void> }> {
  if (!world.redisUrl) throw new Error("no Redis");
  const watch = { away: () => undefined, back: () => undefined };
  const redis = await openRedis({ url: world.redisUrl, prefix: "bench" }, "the benchmark", watch);
  // It says how it stands before it runs scripts.
  while ((await redis.run(YES, [redis.key("ready")], []).catch(() => undefined)) === undefined) await sleep(10);
  return { engine: createRedisEngine({ redis }), close: redis.close };
}

/** One connection accepts, another claims and settles, by the product's own statements and settings. */
async function walk({ accept, work }: Database, engine: Engine | undefined, perCommit: number): Promise<void> {
  const newId = createIds();
  let failure: unknown;
  const queue = createPostgresQueue(work, () => performance.now(), {
    engines: engine && [engine],
    onEngineFailed: (_, error) => {
      failure = error;
    },
  });
  const total = rowsOf(perCommit);
  for (let at = 0; at < total; at += perCommit) {
    const { rows } = rowsFrom(at, perCommit, newId);
    const { handed } = await storeAccepted(accept, rows, NONE, { engines: engine && [engine.name] });
    if (engine) await engine.offer(handed as Handoff[]);
  }
  for (let left = total; left > 0; ) {
    const attempts = await queue.claim(1, CLAIM, 30_000);
    if (attempts.length === 0) throw new Error(`${left} were not claimed`, { cause: failure });
    left -= attempts.length;
    await queue.settle(attempts.map((attempt) => sent(attempt)));
  }
}

async function measure(world: World, name: EngineName, perCommit: number): Promise<Figures> {
  const db = openDatabase({ url: world.databaseUrl, acceptConnections: 1, connections: 1, onError: () => {} });
  const opened = name === "redis" ? await engineIn(world) : undefined;
  try {
    if (opened) await tend(opened.engine, db.own);
    const before = await spent(world);
    await walk(db, opened?.engine, perCommit);
    for (const table of ["ready", "claims", "handoffs"]) await db.house.query(`vacuum carillon.${table}`);
    const after = await spent(world);
    const of = (figure: keyof typeof before) => ((after[figure] - before[figure]) * 1e6) / rowsOf(perCommit);
    return {
      postgresMicroseconds: of("postgres"),
      logBytes: (after.log - before.log) / rowsOf(perCommit),
      redisMicroseconds: of("redis"),
      nodeMicroseconds: of("node"),
    };
  } finally {
    await opened?.close();
    await db.close();
  }
}

const costCase = (world: World, name: EngineName, perCommit: number): Case => ({
  variant: `commits of ${perCommit.toLocaleString("en")}`,
  subject: name,
  settings: "accepted by one connection, claimed and settled by another",
  async prepare() {
    await clear(world);
    await migrate(world.databaseUrl);
    await choose(world.databaseUrl, name);
    await settleStore(world.databaseUrl);
    return { measure: () => measure(world, name, perCommit), finish: () => clear(world) };
  },
});

async function clear(world: World): Promise<void> {
  await clearCarillon(world.databaseUrl);
  if (!world.redisUrl) return;
  const redis = new Redis(world.redisUrl);
  await redis.flushall();
  redis.disconnect();
}

const enginesIn = ({ redisUrl }: World): EngineName[] => (redisUrl ? ["postgres", "redis"] : ["postgres"]);

export const cost: Part = {
  title: "What PostgreSQL spends on a notification with each engine",
  figure: { name: "postgresMicroseconds", unit: " µs" },
  targets: [{ variant: "commits of 1,000", subject: "redis", against: "postgres", atMost: 0.75 }],
  cases: (world) =>
    [1_000, 50, 1].flatMap((perCommit) => enginesIn(world).map((name) => costCase(world, name, perCommit))),
};

/** Filled by a library that can reach the engine, since only who can offer hands over. */
async function fillFor(world: World, name: EngineName): Promise<void> {
  await migrate(world.databaseUrl);
  const opened = name === "redis" ? await engineIn(world) : undefined;
  if (opened) {
    const db = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
    await tend(opened.engine, db);
    await db.end();
    await opened.close();
  }
  await choose(world.databaseUrl, name);
  if (name === "redis")
    Object.assign(process.env, { CARILLON_REDIS_URL: world.redisUrl, CARILLON_REDIS_PREFIX: "bench" });
  await fill(carillonAdapter(world.databaseUrl), JOBS);
  delete process.env.CARILLON_REDIS_URL;
}

const drainCase = (world: World, name: EngineName): Case => ({
  variant: "drain",
  subject: `carillon on ${name}`,
  settings: "defaults, all roles, full record",
  async prepare() {
    await clear(world);
    await fillFor(world, name);
    await settleStore(world.databaseUrl);
    const pool = await startWorkers("carillon", name === "redis" ? "redis" : "throughput", world, 1);
    const remaining = carillonAdapter(world.databaseUrl).remaining;
    return {
      processes: pool.processes,
      measure: async () => ({ perSecond: await drain(pool, JOBS, remaining) }),
      async finish() {
        await pool.stop();
        await clear(world);
      },
    };
  },
});

const bullmqCase = (world: World): Case => ({
  variant: "drain",
  subject: "BullMQ",
  settings: "concurrency 200; jobs deleted",
  async prepare() {
    const adapter = bullmqAdapter(world.redisUrl ?? "");
    await adapter.clear();
    await fill(adapter, JOBS);
    const pool = await startWorkers("BullMQ", "throughput", world, 1);
    return {
      processes: pool.processes,
      measure: async () => ({ perSecond: await drain(pool, JOBS, adapter.remaining) }),
      async finish() {
        await pool.stop();
        await adapter.clear();
      },
    };
  },
});

export const drained: Part = {
  title: `Drain of ${JOBS.toLocaleString("en")} jobs that wait in each engine, one process`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [
    { variant: "drain", subject: "carillon on redis", against: "BullMQ", atLeast: 3 },
    { variant: "drain", subject: "carillon on redis", against: "carillon on postgres", atLeast: 1 },
  ],
  cases: (world) => [
    ...enginesIn(world).map((name) => drainCase(world, name)),
    ...(world.redisUrl ? [bullmqCase(world)] : []),
  ],
};
