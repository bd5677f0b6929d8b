// Tallies: what happened is counted once, whatever happens to those who count, and stays counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { createIds } from "#domain/ids.ts";
import { keepFeed } from "#record/feed-days.ts";
import { coarsen, spreadFresh } from "#record/tallies.ts";
import { foldTallies } from "#steps/planned/fold-tallies.ts";
import { retire } from "#store/housekeeping.ts";
import { accept, feedDatabase, makeId } from "../support/feed.ts";
import { flakyPool } from "../support/flaky-pool.ts";
import { fold, fullCount, tallied } from "../support/tallies.ts";

const ids = (count: number) => Array.from({ length: count }, makeId);

/** So many minutes: whatever there is happened that much earlier. */
async function pass(db: pg.Pool, minutes: number): Promise<void> {
  for (const [table, column, where] of [
    ["events", "at", "true"],
    ["notifications", "accepted_at", "true"],
    ["feed", "at", "true"],
    ["tally_lines", "at", "grain = 'fresh'"],
  ])
    await db.query(`update carillon.${table} set ${column} = ${column} - $1 * interval '1 minute' where ${where}`, [
      minutes,
    ]);
}

async function assertEqual(db: pg.Pool): Promise<void> {
  for (const grain of ["minute", "hour", "day", "ever"] as const)
    assert.deepEqual(await tallied(db, grain), await fullCount(db, grain), grain);
}

/** As a provider would have it: costs, latencies, several outcomes. */
const attempts = (db: pg.Pool | pg.Client, of: readonly string[], to = "sent", outcome = "accepted") =>
  db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome, provider, latency_ms, cost)
     select id, 1, 'attempt', 'processing', $2, 1, $3, 'ses', n * 3.5, 0.0001 from unnest($1::uuid[]) with ordinality as x(id, n)`,
    [of, to, outcome],
  );

test("what happens is counted, each fact once, in its minute, hour and day and for ever", async (t) => {
  const { db } = await feedDatabase(t);
  const some = ids(30);
  await fold(db);
  await accept(db, some);
  await accept(db, ids(2), -1);
  await attempts(db, some.slice(0, 10), "pending", "unavailable");
  await fold(db);
  await attempts(db, some, "sent");
  await fold(db);
  await assertEqual(db);
  const [sent] = (await tallied(db)).filter(({ becomes }) => becomes === "sent");
  assert.deepEqual([sent?.count, sent?.cost, sent?.timed], [30, 0.003, 30]);
});

test("a minute that is over is put into hour, day and ever once, and what of it is counted later is added", async (t) => {
  const { db } = await feedDatabase(t);
  const some = ids(30);
  await fold(db);
  await accept(db, some);
  await attempts(db, some.slice(0, 10), "pending", "unavailable");
  await fold(db);
  const fresh = async () =>
    (await db.query("select count(*)::int as n from carillon.tally_lines where grain = 'fresh'")).rows[0].n;
  assert.ok((await fresh()) > 0);
  await attempts(db, some, "sent");
  // As if what is not counted yet had been held up by somebody's open transaction.
  await pass(db, 3);
  await fold(db);
  assert.equal(await spreadFresh(db, 2), 2);
  await assertEqual(db);
  while ((await spreadFresh(db, 2)) > 0);
  assert.equal(await fresh(), 0);
  await assertEqual(db);
  await accept(db, ids(2));
  await fold(db);
  await assertEqual(db);
});

test("a connection that is lost at any statement leaves nothing counted twice and nothing missing", async (t) => {
  const { db } = await feedDatabase(t);
  const some = ids(3);
  await accept(db, some);
  for (const when of ["before", "after"] as const) {
    for (let at = 1; at <= 16; at += 1) {
      await attempts(db, some, "pending", "unavailable");
      // Where there are no so many statements nothing is lost.
      await foldTallies(flakyPool(db, { at, when }).pool).catch(() => undefined);
    }
  }
  await fold(db);
  await assertEqual(db);
});

test("several who count at once count everything once", async (t) => {
  const { db } = await feedDatabase(t);
  const batches = Array.from({ length: 20 }, () => ids(20));
  let isOver = false;
  const counting = [1, 2].map(async () => {
    while (!isOver) await foldTallies(db);
  });
  for (const batch of batches) {
    await accept(db, batch);
    await attempts(db, batch, "sent");
  }
  isOver = true;
  await Promise.all(counting);
  await fold(db);
  await assertEqual(db);
});

test("of a new database all is counted as the feed tells it, also what happened before anybody counted", async (t) => {
  const { db } = await feedDatabase(t);
  const some = ids(40);
  await accept(db, some);
  await attempts(db, some.slice(0, 30), "sent");
  // Nothing is to be found in the record alone.
  const { rows } = await db.query("select from carillon.tallied where id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'");
  assert.equal(rows.length, 1);
  await fold(db);
  await assertEqual(db);
});

test("what was there before anybody counted is counted from the record, while more happens and transactions are open", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const before = ids(4_100);
  for (let from = 0; from < before.length; from += 1_000) await accept(db, before.slice(from, from + 1_000));
  await attempts(db, before.slice(0, 2_000), "sent");
  // As rows were numbered that are older than the numbers.
  await db.query("update carillon.events set seq = 1 where notification_id = any ($1)", [before.slice(0, 50)]);
  await db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, seq) select id, 1, 'delivered', 'sent', 'delivered', 1 from unnest($1::uuid[]) as id`,
    [before.slice(0, 50)],
  );
  // From before the feed, and from before there were tallies.
  await db.query("truncate carillon.feed");
  await db.query("update carillon.tallied set tenant = default, id = default");
  const [open, late] = [await connect(), ids(5)];
  await open.query("begin");
  await accept(open, late);
  await attempts(db, before.slice(2_000, 2_100), "sent");
  assert.equal((await foldTallies(db))?.isAtEnd, false);
  // What says of itself how much it is comes with the record, too.
  await open.query("commit");
  await open.query("begin");
  await accept(db, ids(100));
  await attempts(db, before.slice(2_100, 2_200), "failed", "rejected");
  await attempts(open, late, "sent");
  while (!(await foldTallies(db))?.isAtEnd);
  await attempts(db, before.slice(4_000), "sent");
  await open.query("commit");
  await fold(db);
  await assertEqual(db);
});

const retireAll = async (db: pg.Pool, days: number) => {
  for await (const _ of retire(db, days, 1_000));
};
const total = async (db: pg.Pool) => (await tallied(db)).reduce((sum, { count }) => sum + Number(count), 0);

/** Ids of that many days ago, and their week. */
async function old(db: pg.Pool, days: number, count: number): Promise<string[]> {
  await db.query(
    "select carillon.make_partitions(at, at) from (select carillon.now() - $1 * interval '1 day' as at) t",
    [days],
  );
  const makeOld = createIds(() => Date.now() - days * 86_400_000);
  const made = Array.from({ length: count }, makeOld);
  await accept(db, made);
  await db.query(
    "update carillon.notifications set accepted_at = accepted_at - $2 * interval '1 day' where id = any ($1)",
    [made, days],
  );
  await db.query("update carillon.feed set at = at - $2 * interval '1 day' where ids && $1", [made, days]);
  return made;
}

test("what retention takes stays counted, and it takes nothing that is not", async (t) => {
  const { db } = await feedDatabase(t);
  await fold(db);
  const some = await old(db, 60, 10);
  await attempts(db, some, "sent");
  await db.query("delete from carillon.ready");
  await assert.rejects(retireAll(db, 30), /could not be done/);
  const left = async () => (await db.query("select count(*)::int as n from carillon.notifications")).rows[0].n;
  assert.equal(await left(), 10, "nobody has counted them yet");
  await fold(db);
  assert.equal(await total(db), 20);
  await retireAll(db, 30);
  assert.deepEqual([await left(), await total(db)], [0, 20]);
});

test("a day of the feed stays until it is counted", async (t) => {
  const { db } = await feedDatabase(t);
  await fold(db);
  await accept(db, ids(3));
  await db.query("select carillon.make_feed_day(carillon.now() - interval '10 days')");
  const age = () => db.query("update carillon.feed set at = at - interval '10 days'");
  const rows = async () => (await db.query("select count(*)::int as n from carillon.feed")).rows[0].n;
  const keep = async () => {
    for await (const _ of keepFeed(db, 7, 1_000));
  };
  await age();
  await keep();
  assert.equal(await rows(), 1);
  await fold(db);
  await keep();
  assert.deepEqual([await rows(), await total(db)], [0, 3]);
});

test("minutes, hours and days go once they are old, and what is coarser has counted the same", async (t) => {
  const { db } = await feedDatabase(t);
  await fold(db);
  for (const days of [0, 3, 100]) await old(db, days, 5);
  await fold(db);
  const grains = async () =>
    Object.fromEntries(
      (await db.query("select grain, sum(count)::int as n from carillon.tallies group by grain")).rows.map(
        ({ grain, n }) => [grain, n],
      ),
    );
  await pass(db, 3);
  while ((await spreadFresh(db, 2)) > 0);
  assert.deepEqual(await grains(), { minute: 5, hour: 10, day: 15, ever: 15 }, "what is too old is not made at all");
  await db.query("update carillon.tally_lines set at = at - interval '70 days' where grain <> 'ever'");
  while ((await coarsen(db, 1)) > 0);
  assert.deepEqual(await grains(), { day: 15, ever: 15 });
});
