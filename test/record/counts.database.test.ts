// Whoever writes facts by the hundred says how many of which kind they are, and that is what is counted: the same as the record says, without a look at it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import type { Claimed, Ended } from "#domain/attempt.ts";
import { BOUNDS_MS, PLACES } from "#domain/histogram.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { feedDatabase, makeId } from "../support/feed.ts";
import { fold, fullCount, tallied } from "../support/tallies.ts";

const ids = (count: number) => Array.from({ length: count }, makeId);

const accept = (db: pg.Pool, some: readonly string[], tenant = 1, request: object = { channel: "email" }) =>
  db.query("select from carillon.accept($1, false)", [
    JSON.stringify(some.map((i) => ({ i, t: tenant, c: "email", p: 2, r: request }))),
  ]);

/** Of each row of the feed, how many facts it has, and how many lines say what they are; null where none do. */
const lines = async (db: pg.Pool): Promise<[number, number | null][]> => {
  const { rows } = await db.query(
    "select size, json_array_length(counts) as lines from carillon.feed order by key, seq",
  );
  return rows.map(({ size, lines }) => [size, lines]);
};

/** What providers say: of two providers, some with a price, slow and fast, and some that are to be tried again or were never tried. */
function endedBy(attempt: Claimed, n: number): Ended {
  if (n % 10 === 9) return { attempt, settlement: { to: "queued" } };
  const provider = n % 3 === 0 ? 'the "other" one' : "ses";
  if (n % 10 === 8)
    return {
      attempt,
      settlement: { to: "pending", waitMs: 60_000, spendsAttempt: true },
      line: { outcome: "unavailable", provider, error: "away" },
    };
  return {
    attempt,
    settlement: { to: "sent" },
    line: { outcome: "accepted", provider, cost: 0.0125, latencyMs: n % 2 === 0 ? 1.5 : 9.99 },
  };
}

async function assertEqual(db: pg.Pool): Promise<void> {
  for (const grain of ["minute", "ever"] as const)
    assert.deepEqual(await tallied(db, grain), await fullCount(db, grain), grain);
}

test("what many of one commit are is counted as the record has it", async (t) => {
  const { db } = await feedDatabase(t);
  const queue = createPostgresQueue(db, () => performance.now());
  const { rows: tenants } = await db.query("insert into carillon.tenants (name) values ('b') returning id");
  await accept(db, ids(150));
  await accept(db, ids(150), tenants[0].id);
  const attempts = await queue.claim(1, 300, 30_000);
  const byTenant = [1, tenants[0].id].map((tenant) => attempts.filter((attempt) => attempt.tenant === tenant));
  await queue.settle(byTenant.flatMap((some) => some.map(endedBy)));
  const [first, second, settled] = await lines(db);
  assert.deepEqual(
    [first, second],
    [
      [150, 1],
      [150, 1],
    ],
  );
  // Of two tenants, two providers; once without a latency, and in two places with one.
  assert.deepEqual(settled, [270, 12]);
  await fold(db);
  await assertEqual(db);
  const [some] = (await tallied(db)).filter(({ becomes, provider }) => becomes === "sent" && provider === "ses");
  assert.deepEqual([some?.count, some?.cost, some?.timed], [80, 1, 80]);
});

test("nothing of it is looked up", async (t) => {
  const { db } = await feedDatabase(t);
  const queue = createPostgresQueue(db, () => performance.now());
  await accept(db, ids(100));
  await queue.settle((await queue.claim(1, 100, 30_000)).map(endedBy));
  const whole = await fullCount(db);
  await db.query("truncate carillon.events, carillon.notifications");
  await fold(db);
  assert.deepEqual(await tallied(db), whole);
});

test("who has lost its lease counts for nothing", async (t) => {
  const { db } = await feedDatabase(t);
  const queue = createPostgresQueue(db, () => performance.now());
  await accept(db, ids(100));
  const lost = await queue.claim(1, 40, 30_000);
  const held = await queue.claim(1, 60, 30_000);
  await db.query("delete from carillon.claims where seqs[1] = $1", [lost[0]?.seq]);
  await queue.settle([...lost, ...held].map(endedBy));
  assert.deepEqual((await lines(db))[1], [54, 6]);
  await fold(db);
  await assertEqual(db);
});

test("few facts, or of as many kinds, are looked up one by one", async (t) => {
  const { db } = await feedDatabase(t);
  const queue = createPostgresQueue(db, () => performance.now());
  await accept(db, ids(3));
  await queue.settle((await queue.claim(1, 3, 30_000)).map(endedBy));
  assert.deepEqual(await lines(db), [
    [3, null],
    [3, null],
  ]);
  await fold(db);
  await assertEqual(db);
});

test("what a settlement says counts for that statement alone, on any connection and in any transaction", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const client = await connect();
  const queue = createPostgresQueue(client, () => performance.now());
  const some = ids(100);
  await accept(db, some);
  const report = () =>
    client.query(
      `insert into carillon.events (notification_id, tenant, type, from_status, to_status)
       select id, 1, 'delivered', 'sent', 'delivered' from unnest($1::uuid[]) as id`,
      [some],
    );
  await queue.settle((await queue.claim(1, 50, 30_000)).map(endedBy));
  await report();
  await client.query("begin");
  await queue.settle((await queue.claim(1, 50, 30_000)).map(endedBy));
  await report();
  await client.query("commit");
  assert.deepEqual(
    (await lines(db)).map(([, counted]) => counted !== null),
    [true, true, false, true, false],
  );
  await fold(db);
  await assertEqual(db);
});

test("of a commit in which one cannot be put into the feed as it is, all are looked up", async (t) => {
  const { db } = await feedDatabase(t);
  const queue = createPostgresQueue(db, () => performance.now());
  const settle = async (make: (attempt: Claimed, n: number) => Ended) =>
    queue.settle((await queue.claim(1, 51, 30_000)).map(make));
  await accept(db, ids(50));
  await accept(db, ids(1), 1, {});
  await settle(endedBy);
  await accept(db, ids(51));
  await settle((attempt, n) => ({
    attempt,
    settlement: { to: "sent" },
    line: { outcome: "accepted", provider: n === 7 ? "half \ud83d" : "ses" },
  }));
  assert.deepEqual(
    (await lines(db)).map(([, counted]) => counted),
    [1, null, null, 1, null],
  );
  await fold(db);
  await assertEqual(db);
});

test("of each channel, lane and place in the histogram, up to where one begins", async (t) => {
  const { db } = await feedDatabase(t);
  const queue = createPostgresQueue(db, () => performance.now());
  const rows = ids(960).map((i, n) => {
    const c = n % 2 === 0 ? "email" : "sms";
    return { i, t: 1, c, p: n % 4 < 2 ? 1 : 2, r: { channel: c } };
  });
  await db.query("select from carillon.accept($1, false)", [JSON.stringify(rows)]);
  // As latencies are written: to a hundredth of a millisecond.
  const latencies = [0, ...BOUNDS_MS].flatMap((bound) => [Math.max(0, bound - 0.01), bound, bound + 0.01]);
  const attempts = [...(await queue.claim(1, 480, 30_000)), ...(await queue.claim(1, 480, 30_000))];
  await queue.settle(
    attempts.map((attempt, n) => ({
      attempt,
      settlement: { to: "sent" },
      line: { outcome: "accepted", latencyMs: latencies[Math.floor(n / 4) % latencies.length] as number },
    })),
  );
  const counted = (await lines(db)).map(([, counted]) => counted);
  assert.deepEqual([counted[0], (counted[1] ?? 0) > PLACES], [4, true]);
  await fold(db);
  await assertEqual(db);
});
