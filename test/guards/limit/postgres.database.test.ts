// The PostgreSQL engine of limits passes the suite of all engines, forgets what is idle, and is quick enough.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import type { Rate } from "#domain/gcra.ts";
import { createPostgresLimit } from "#guards/limit/postgres.ts";
import { migrate } from "#store/connection/migrate.ts";
import { forgetIdleLimits, readLimits } from "#store/limits.ts";
import { limitConformance } from "../../conformance/limit.ts";
import { type FreshDatabase, freshDatabase } from "../../support/postgres.ts";

async function setUp() {
  const database = await freshDatabase();
  await migrate(database.url);
  const pools = [new pg.Pool({ connectionString: database.url }), new pg.Pool({ connectionString: database.url })];
  for (const pool of pools) pool.on("error", () => {});
  const [one, two] = pools as [pg.Pool, pg.Pool];
  return {
    limit: createPostgresLimit(one),
    another: createPostgresLimit(two),
    async stop() {
      await Promise.all(pools.map((pool) => pool.end()));
      await database.drop();
    },
  };
}

limitConformance("PostgreSQL", setUp);

let database: FreshDatabase;
let db: pg.Pool;
before(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  db = new pg.Pool({ connectionString: database.url, max: 4 });
  db.on("error", () => {});
});
after(async () => {
  await db.end();
  await database.drop();
});

test("a thousand who ask at once share few statements, and each gets an instant of its own", async (t) => {
  let statements = 0;
  const query = (...args: Parameters<pg.Pool["query"]>) => {
    statements++;
    return db.query(...args);
  };
  const counting = { query: query as pg.Pool["query"] };
  const limit = createPostgresLimit(counting);
  const rates: Rate[] = [
    { per: "second", most: 10 },
    { per: "minute", most: 300 },
    { per: "hour", most: 1000 },
  ];
  const startedAt = performance.now();
  const taken = await Promise.all(
    Array.from({ length: 1000 }, (_, seq) => limit.take([{ key: "account:many", rates, n: 1 }], { seq, rank: 2 }, 0)),
  );
  const ms = performance.now() - startedAt;
  const waits = taken.flatMap((one) => (one.isGranted ? [] : [one.waitMs]));
  assert.ok(waits.length >= 990);
  assert.deepEqual(
    waits,
    [...waits].sort((a, b) => a - b),
    "in the order they asked",
  );
  assert.equal(new Set(waits.map((wait) => Math.round(wait))).size > 900, true);
  // 286 a minute for 300 of them, then 951 an hour.
  const last = waits.at(-1) ?? 0;
  assert.ok(last > 3_000_000 && last < 3_700_000, `the last comes back after ${last} ms`);
  assert.ok(statements <= 15, `${statements} statements`);
  t.diagnostic(`1000 asks in ${ms.toFixed(0)} ms, ${statements} statements`);
});

test("many keys in any order do not wait for each other for ever", async () => {
  const limits = [createPostgresLimit(db), createPostgresLimit(db), createPostgresLimit(db)];
  const rates: Rate[] = [{ per: "second", most: 1000, burst: 500 }];
  const keys = Array.from({ length: 8 }, (_, n) => `account:k${n}`);
  const all = Array.from({ length: 300 }, (_, n) => {
    const chosen = [keys[n % 8], keys[(n * 5 + 3) % 8]].map((key) => ({ key: key as string, rates, n: 1 }));
    return limits[n % 3]?.take(n % 2 ? chosen : chosen.reverse(), { seq: n, rank: 2 }, 0);
  });
  assert.equal((await Promise.all(all)).length, 300);
});

test("keys of which nothing is left to say are forgotten, others are kept", async () => {
  const limit = createPostgresLimit(db);
  await limit.take([{ key: "recipient:x", rates: [{ per: "second", most: 1000 }], n: 1 }], { seq: 1, rank: 2 }, 0);
  await limit.take([{ key: "recipient:y", rates: [{ per: "hour", most: 2 }], n: 1 }], { seq: 1, rank: 2 }, 0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await forgetIdleLimits(db);
  const left = await readLimits(db, ["recipient:x", "recipient:y"]);
  assert.deepEqual(
    left.map(({ key }) => key),
    ["recipient:y"],
  );
});

test("however many keys are idle, all of them are forgotten", async () => {
  await db.query("insert into carillon.limits (key) select 'recipient:idle:' || n from generate_series(1, 10500) n");
  await forgetIdleLimits(db);
  const { rows } = await db.query("select key from carillon.limits where key like 'recipient:idle:%'");
  assert.equal(rows.length, 0);
});
