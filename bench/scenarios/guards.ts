// What the guards cost: a drain with limits and locks set but not in the way, grants of the limiter, and locks.

import pg from "pg";
import type { Limit } from "../../src/guards/limit/limit.ts";
import { createLimiter } from "../../src/guards/limit/limited.ts";
import { createPostgresLimit } from "../../src/guards/limit/postgres.ts";
import { createRedisLimit } from "../../src/guards/limit/redis.ts";
import { createPostgresLock } from "../../src/guards/lock/postgres.ts";
import { migrate } from "../../src/store/connection/migrate.ts";
import { openRedis, script } from "../../src/wire/redis.ts";
import { carillonAdapter, clearCarillon } from "../adapters/carillon.ts";
import { fill, drain as measureDrain } from "../drain.ts";
import type { Case, Scenario, World } from "../scenario.ts";
import { settleStore } from "../sql.ts";
import { quantile } from "../statistics.ts";
import { startWorkers } from "../worker-pool.ts";

const JOBS = 50_000;
const GRANTS = 100_000;
const ASKING = 200;
const LOCKS = 500;
const IDLE = {
  defaults: "throughput",
  "limits and locks for others": "guarded",
  "a tenant's limit that never refuses": "limited",
} as const;

function drainCases(world: World): Case[] {
  return Object.entries(IDLE).map(([subject, settings]) => ({
    variant: "drain",
    subject,
    settings,
    async prepare() {
      const adapter = carillonAdapter(world.databaseUrl);
      await adapter.clear();
      await fill(adapter, JOBS);
      await settleStore(world.databaseUrl);
      const pool = await startWorkers("carillon", settings, world, 1);
      return {
        processes: pool.processes,
        measure: async () => ({ perSecond: await measureDrain(pool, JOBS, adapter.remaining) }),
        async finish() {
          await pool.stop();
          await adapter.clear();
        },
      };
    },
  }));
}

async function openPool(world: World): Promise<pg.Pool> {
  await clearCarillon(world.databaseUrl);
  await migrate(world.databaseUrl);
  return new pg.Pool({ connectionString: world.databaseUrl, max: 10 });
}

const grants = (world: World): Case => ({
  variant: "grants",
  subject: "carillon",
  settings: `one key, a million a second, ${ASKING} asking at once`,
  async prepare() {
    const pool = await openPool(world);
    const limiter = createLimiter(createPostgresLimit(pool), () => performance.now());
    const keys = [{ key: "account:bench", rates: [{ per: "second" as const, most: 1_000_000 }] }];
    return {
      async measure() {
        let left = GRANTS;
        const from = performance.now();
        const line = async () => {
          while (left-- > 0) {
            const taken = await limiter.take(keys, { seq: left, rank: 2 });
            if (taken && !taken.isGranted) await new Promise((resolve) => setTimeout(resolve, taken.waitMs));
          }
        };
        await Promise.all(Array.from({ length: ASKING }, line));
        return { perSecond: (GRANTS * 1000) / (performance.now() - from) };
      },
      finish: () => pool.end(),
    };
  },
});

const SINGLE = { "one key": 1, "ten thousand keys": 10_000 } as const;

/** Each asks the engine itself for one, as whoever is under a low rate does. */
function singles(world: World): Case[] {
  const engines: { [subject: string]: () => Promise<{ limit: Limit; close: () => Promise<unknown> }> } = {
    async PostgreSQL() {
      const pool = await openPool(world);
      return { limit: createPostgresLimit(pool), close: () => pool.end() };
    },
    async Redis() {
      const settings = { url: world.redisUrl ?? "", prefix: `bench-${process.pid}` };
      const redis = await openRedis(settings, "the benchmark", { away: () => undefined, back: () => undefined });
      const ready = script("return 'yes'");
      while (!(await redis.run(ready, [redis.key("ready")], []).catch(() => undefined)))
        await new Promise((resolve) => setTimeout(resolve, 10));
      return { limit: createRedisLimit(redis), close: redis.close };
    },
  };
  const subjects = Object.entries(engines).filter(([subject]) => world.redisUrl || subject !== "Redis");
  return Object.entries(SINGLE).flatMap(([variant, keys]) =>
    subjects.map(([subject, open]) => ({
      variant,
      subject,
      settings: `one at a time for each of ${ASKING} who ask at once`,
      async prepare() {
        const { limit, close } = await open();
        const rates = [{ per: "second" as const, most: 1_000_000 }];
        return {
          async measure() {
            let left = GRANTS;
            const from = performance.now();
            const line = async () => {
              for (let n = left--; n > 0; n = left--) {
                const taken = await limit.take([{ key: `recipient:${n % keys}`, rates, n: 1 }], { seq: n, rank: 2 }, 0);
                if (!taken.isGranted) throw new Error("it was refused");
              }
            };
            await Promise.all(Array.from({ length: ASKING }, line));
            return { perSecond: (GRANTS * 1000) / (performance.now() - from) };
          },
          async finish() {
            await close();
          },
        };
      },
    })),
  );
}

const locks = (world: World): Case => ({
  variant: "one at a time",
  subject: "PostgreSQL",
  settings: "acquire and release",
  async prepare() {
    const pool = await openPool(world);
    const lock = createPostgresLock({ db: pool, identity: "bench", monotonic: () => performance.now() });
    return {
      async measure() {
        const took: number[] = [];
        for (let n = 0; n < LOCKS; n++) {
          const from = performance.now();
          const hold = await lock.acquire(`delivery-${n}`, 30_000);
          took.push(performance.now() - from);
          if (hold.kind !== "acquired") throw new Error(`the lock is ${hold.kind}`);
          await lock.release(hold);
        }
        return { p95Ms: quantile(took, 0.95), p50Ms: quantile(took, 0.5) };
      },
      finish: () => pool.end(),
    };
  },
});

export const guards: Scenario = {
  summary: "the cost of limits and locks",
  parts: {
    idle: {
      title: `Drain of ${JOBS.toLocaleString("en")} jobs with guards set but not in the way`,
      figure: { name: "perSecond", unit: "/s" },
      targets: [{ variant: "drain", subject: "limits and locks for others", against: "defaults", atLeast: 0.95 }],
      cases: drainCases,
    },
    grants: {
      title: `${GRANTS.toLocaleString("en")} grants of one limit, taken in blocks`,
      figure: { name: "perSecond", unit: "/s" },
      targets: [],
      cases: (world) => [grants(world)],
    },
    engines: {
      title: `${GRANTS.toLocaleString("en")} grants, one by one`,
      figure: { name: "perSecond", unit: "/s" },
      targets: Object.keys(SINGLE).map((variant) => ({ variant, subject: "Redis", against: "PostgreSQL", atLeast: 5 })),
      cases: singles,
    },
    locks: {
      title: `Time to acquire a lock, ${LOCKS} of them`,
      figure: { name: "p95Ms", unit: " ms" },
      targets: [{ variant: "one at a time", subject: "PostgreSQL", limits: { p95Ms: 20 } }],
      cases: (world) => [locks(world)],
    },
  },
};
