// The house: a chore that hangs, throws or has a great deal to do keeps no other waiting.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { type Chore, type House, type HouseOptions, startHouse } from "#roles/house.ts";
import {
  type Database,
  HOUSE_CONNECTIONS,
  isTooSlow,
  openDatabase,
  type Queryable,
} from "#store/connection/database.ts";
import { limitedTo } from "#store/connection/limited.ts";
import { inBatches } from "#store/housekeeping.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

let fresh: FreshDatabase;
let database: Database;
let other: pg.Client;
before(async () => {
  fresh = await freshDatabase();
  database = openDatabase({ url: fresh.url, acceptConnections: 1, connections: 1, onError: () => {} });
  other = new pg.Client(fresh.url);
  await other.connect();
  await other.query("create table held (); create table rows as select generate_series(1, 5000) as n");
});
after(async () => {
  await other.end();
  await database.close();
  await fresh.drop();
});

const chore = (name: string, more: Partial<Chore>): Chore => ({
  name,
  isUrgent: false,
  everyMs: 3_600_000,
  limitMs: 5_000,
  size: 1_000,
  level: "debug",
  begin: (db) => inBatches(2, async () => (await db.query("select")).rowCount ?? 0),
  ...more,
});

type Told = { name: string; count: number; error?: unknown; at: number };

function start(
  chores: Chore[],
  limited?: HouseOptions["limitedTo"],
): House & { told: Told[]; of(name: string): Told[] } {
  const told: Told[] = [];
  const house = startHouse({
    chores,
    limitedTo: limited ?? ((limitMs) => limitedTo(database.house, limitMs)),
    places: HOUSE_CONNECTIONS,
    leads: () => true,
    retryMs: 50,
    facts: {
      choreKept: ({ name }, count) => told.push({ name, count, at: performance.now() }),
      choreFailed: ({ name }, error) => told.push({ name, count: 0, error, at: performance.now() }),
    },
  });
  return { ...house, told, of: (name) => told.filter((one) => one.name === name) };
}

test("a chore that hangs on a lock is cut off within its limit and tried again, while the others go on", async () => {
  await other.query("begin; lock table held in access exclusive mode");
  const startedAt = performance.now();
  const { of, stop } = start([
    chore("hangs", {
      limitMs: 300,
      begin: (db) => inBatches(1, async () => (await db.query("table held")).rowCount ?? 0),
    }),
    chore("goes on", { everyMs: 10 }),
  ]);
  try {
    const [cut] = await until(async () => (of("hangs").length > 0 ? of("hangs") : undefined));
    assert.ok(isTooSlow(cut?.error), String(cut?.error));
    assert.ok((cut?.at ?? 0) - startedAt >= 300);
    // Meanwhile, and while it hangs again, the other comes round.
    await until(async () => (of("goes on").length > 3 ? true : undefined));
    const { rows } = await other.query("select count(*)::int as n from pg_locks where not granted");
    assert.ok(rows[0].n <= 1, "what was cut off waits for nothing any more");
    await until(async () => (of("hangs").length > 1 ? true : undefined));
    await other.query("rollback");
    await until(async () => (of("hangs").at(-1)?.error === undefined ? true : undefined));
  } finally {
    await other.query("rollback");
    await stop();
  }
});

test("a chore that throws is tried again soon, then more rarely, while the others keep their intervals", async () => {
  let hasFailed = 0;
  const { of, stop } = start([
    chore("throws", {
      // biome-ignore lint/correctness/useYield: it throws before it could.
      async *begin() {
        if (hasFailed++ < 3) throw new Error("not yet");
      },
    }),
    chore("patient", {}),
    chore("often", { everyMs: 20 }),
  ]);
  try {
    await until(async () => (of("throws").length === 4 ? true : undefined));
    const tries = of("throws");
    assert.equal(tries.at(-1)?.error, undefined);
    const gaps = tries.slice(1).map(({ at }, n) => at - (tries[n]?.at ?? 0));
    assert.ok(
      [50, 100, 200].every((ms, n) => (gaps[n] ?? 0) >= ms - 2),
      String(gaps),
    );
    assert.equal(of("patient").length, 1, "an hour is not over");
    assert.ok(of("often").length > 3);
  } finally {
    await stop();
  }
});

test("a chore with a great deal to do takes so many rows at a time, and lets the others come round", async () => {
  const deleted: number[] = [];
  const { of, stop } = start([
    chore("much", {
      size: 100,
      begin: (db, size) =>
        inBatches(size, async (count) => {
          const sql = "delete from rows where ctid = any (array(select ctid from rows limit $1))";
          deleted.push((await db.query(sql, [count])).rowCount ?? 0);
          return deleted.at(-1) ?? 0;
        }),
    }),
    chore("often", { everyMs: 1 }),
  ]);
  try {
    const [done] = await until(async () => (of("much").length > 0 ? of("much") : undefined));
    assert.equal(done?.count, 5_000);
    assert.equal(Math.max(...deleted), 100);
    assert.ok(of("often").length > 1);
  } finally {
    await stop();
  }
});

/** A pool without any patience: refuses whoever finds no connection free. */
function impatient() {
  const used = { now: 0, most: 0 };
  const query = async (held: Promise<void>) => {
    if (used.now === HOUSE_CONNECTIONS) throw new Error("no connection");
    used.most = Math.max(used.most, ++used.now);
    await held;
    used.now--;
  };
  return { used, db: { query } as unknown as Queryable };
}

test("many slow chores at once wait for each other, and neither fail nor hold up those that somebody waits for", async () => {
  const { used, db } = impatient();
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let begun = 0;
  const takes = (until: () => Promise<void>): Chore["begin"] =>
    async function* (db) {
      begun++;
      await db.query(until() as never);
      yield 1;
    };
  const slow = Array.from({ length: 7 }, (_, n) => chore(`slow ${n}`, { begin: takes(() => held) }));
  const urgent = Array.from({ length: 4 }, (_, n) =>
    chore(`urgent ${n}`, { isUrgent: true, everyMs: 5, begin: takes(() => new Promise(setImmediate)) }),
  );
  const { told, of, stop } = start([...slow, ...urgent], () => db);
  try {
    await until(async () => (urgent.every(({ name }) => of(name).length > 3) ? true : undefined));
    assert.deepEqual(
      slow.flatMap(({ name }) => of(name)),
      [],
      "meanwhile the slow ones are at work or wait",
    );
    letGo();
    await until(async () => (slow.every(({ name }) => of(name).length === 1) ? true : undefined));
    assert.deepEqual(
      told.filter(({ error }) => error !== undefined),
      [],
    );
    assert.equal(used.most, HOUSE_CONNECTIONS);
  } finally {
    letGo();
    await stop();
  }
  const before = begun;
  await new Promise(setImmediate);
  assert.equal(begun, before, "nothing is begun after the stop");
});

test("those that somebody waits for may be slow too, and the others still have their turn", async () => {
  const { db } = impatient();
  const busy = Array.from({ length: 4 }, (_, n) =>
    chore(`busy ${n}`, {
      isUrgent: true,
      async *begin(db) {
        for (;;) {
          await db.query(new Promise(setImmediate) as never);
          yield 1;
        }
      },
    }),
  );
  const { told, of, stop } = start([...busy, chore("rare", {})], () => db);
  try {
    await until(async () => (of("rare").length === 1 ? true : undefined));
    assert.equal(told.length, 1);
  } finally {
    await stop();
  }
});

test("a step that is cut off takes half as many rows next time, until all is done once", async () => {
  const sizes: number[] = [];
  const { of, stop } = start([
    chore("slow", {
      everyMs: 10,
      limitMs: 100,
      async *begin(db, size) {
        sizes.push(size);
        await db.query("select pg_sleep(case when $1::int > 250 then 60 else 0 end)", [size]);
        yield 1;
      },
    }),
  ]);
  try {
    await until(async () => (sizes.length > 4 ? true : undefined));
    assert.deepEqual(sizes.slice(0, 5), [1_000, 500, 250, 1_000, 500]);
    assert.ok(isTooSlow(of("slow")[0]?.error));
  } finally {
    await stop();
  }
});

test("a chore that is left before its end lets go of what it holds, and the stop waits for that", async () => {
  let steps = 0;
  let holds = false;
  const { told, stop } = start([
    chore("holds", {
      async *begin(db) {
        holds = true;
        try {
          for (;;) {
            await db.query("select");
            steps += 1;
            yield 1;
          }
        } finally {
          await db.query("select");
          holds = false;
        }
      },
    }),
  ]);
  await until(async () => (steps > 2 ? true : undefined));
  assert.ok(holds);
  await stop();
  assert.deepEqual([holds, told], [false, []]);
});
