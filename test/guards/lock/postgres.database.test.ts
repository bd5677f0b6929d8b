// Locks in PostgreSQL pass the suite of all locks, and leave no rows behind.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { createPostgresLock } from "#guards/lock/postgres.ts";
import { migrate } from "#store/connection/migrate.ts";
import { forgetLocks } from "#store/locks.ts";
import { lockConformance } from "../../conformance/lock.ts";
import { type FreshDatabase, freshDatabase } from "../../support/postgres.ts";
import { until } from "../../support/until.ts";

const monotonic = () => performance.now();
const NOWHERE = "postgres://nobody@127.0.0.1:1/none";

/** Its connections may still be closing when the database is dropped. */
function poolFor(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 10, connectionTimeoutMillis: 1_000 });
  return pool.on("error", () => undefined);
}

lockConformance("PostgreSQL", 600, async () => {
  const database = await freshDatabase();
  await migrate(database.url);
  const db = poolFor(database.url);
  const nowhere = poolFor(NOWHERE);
  return {
    open: (identity) => createPostgresLock({ db, identity, monotonic }),
    openBroken: () => createPostgresLock({ db: nowhere, identity: "nobody", monotonic }),
    async stop() {
      await Promise.all([db.end(), nowhere.end()]);
      await database.drop();
    },
  };
});

let database: FreshDatabase;
let db: pg.Pool;
before(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  db = poolFor(database.url);
});
after(async () => {
  await db.end();
  await database.drop();
});

test("rows of locks that nobody has held for a while are removed, those of held ones are not", async () => {
  const lock = createPostgresLock({ db, identity: "ann", monotonic });
  const free = await lock.acquire("free", 30_000);
  assert.ok(free.kind === "acquired");
  await lock.release(free);
  await lock.acquire("held", 30_000);
  await forgetLocks(db, 60_000);
  const keys = async () => (await db.query<{ key: string }>("select key from carillon.locks order by key")).rows;
  assert.deepEqual(await keys(), [{ key: "free" }, { key: "held" }]);
  await forgetLocks(db, 0);
  assert.deepEqual(await keys(), [{ key: "held" }]);
  const again = await lock.acquire("free", 30_000);
  assert.ok(again.kind === "acquired" && again.token > free.token, "tokens grow past a removed row");
});

test("a released lock has its row removed by later releases", async () => {
  let now = 0;
  const lock = createPostgresLock({ db, identity: "ann", monotonic: () => now });
  await db.query(
    "insert into carillon.locks values ('old', 'gone', 1, now() - interval '1 hour') on conflict do nothing",
  );
  const hold = await lock.acquire("sweeper", 30_000);
  assert.ok(hold.kind === "acquired");
  now += 61_000;
  await lock.release(hold);
  const look = () => db.query("select 1 from carillon.locks where key = 'old'");
  await until(async () => ((await look()).rowCount === 0 ? true : undefined));
});

test("a role that may not write is told so", async () => {
  await db.query("create role onlooker login; grant usage on schema carillon to onlooker");
  const client = await db.connect();
  try {
    await client.query("set role onlooker");
    const lock = createPostgresLock({ db: client as unknown as pg.Pool, identity: "eve", monotonic });
    const answer = await lock.acquire("k", 30_000);
    assert.deepEqual(answer, { kind: "unavailable", reason: "forbidden", detail: "42501" });
  } finally {
    await client.query("reset role; drop owned by onlooker; drop role onlooker");
    client.release();
  }
});
