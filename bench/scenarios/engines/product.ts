// The engines as they are: what PostgreSQL spends on a notification with each, and how fast workers deliver what waits there, beside BullMQ on the same Redis.

import type { Handoff } from "../../../src/domain/handoff.ts";
import { createIds } from "../../../src/domain/ids.ts";
import { stretchesOf } from "../../../src/domain/stretches.ts";
import type { Engine } from "../../../src/queue/engine.ts";
import { createPostgresQueue } from "../../../src/queue/postgres/engine.ts";
import { storeAccepted } from "../../../src/record/accept.ts";
import { type Database, openDatabase } from "../../../src/store/connection/database.ts";
import { migrate } from "../../../src/store/connection/migrate.ts";
import { drain, fill } from "../../drain.ts";
import type { Case, Figures, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { RANK, rowsFrom, rowsOf, sent, spent, TENANT } from "./prototype.ts";
import { choose, clearStores, type EngineName, openRedisEngine, type Subject, subjectsIn } from "./subjects.ts";

const CLAIM = 1000;
/** A few seconds: half of one is mostly the way to full speed. */
const JOBS = 250_000;
const NONE = { hasKeys: false, hasRegions: false, hasCallbacks: false };

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
    const { rows, ids } = rowsFrom(at, perCommit, newId);
    const stretches = engine && stretchesOf(ids.map((id) => ({ tenant: TENANT, rank: RANK, id })));
    const { handed } = await storeAccepted(accept, rows, NONE, { engines: engine && [engine.name], stretches });
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
  const opened = name === "redis" ? await openRedisEngine(world, db.own) : undefined;
  try {
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
    await clearStores(world);
    await migrate(world.databaseUrl);
    await choose(world.databaseUrl, name);
    await settleStore(world.databaseUrl);
    return { measure: () => measure(world, name, perCommit), finish: () => clearStores(world) };
  },
});

const enginesIn = ({ redisUrl }: World): ("postgres" | "redis")[] => (redisUrl ? ["postgres", "redis"] : ["postgres"]);

export const cost: Part = {
  title: "What PostgreSQL spends on a notification with each engine",
  figure: { name: "postgresMicroseconds", unit: " µs" },
  targets: [{ variant: "commits of 1,000", subject: "redis", against: "postgres", atMost: 0.75 }],
  cases: (world) =>
    [1_000, 50, 1].flatMap((perCommit) => enginesIn(world).map((name) => costCase(world, name, perCommit))),
};

const drainCase = (world: World, { name, settings, start }: Subject): Case => ({
  variant: "drain",
  subject: name,
  settings,
  async prepare() {
    const { adapter, processes, startWorkers, stop } = await start();
    await fill(adapter, JOBS);
    await settleStore(world.databaseUrl);
    const pool = await startWorkers("throughput");
    return {
      processes: { ...processes, ...pool.processes },
      measure: async () => ({ perSecond: await drain(pool, JOBS, adapter.remaining) }),
      async finish() {
        await pool.stop();
        await stop();
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
  cases: (world) => subjectsIn(world, ["postgres", "redis"]).map((subject) => drainCase(world, subject)),
};
