// With a million rows, the ledger, the queue, statistics, costs and the metrics look at a small part of them. Judged by the blocks that PostgreSQL
// looks at, and not by the clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { spansOf } from "#domain/spans.ts";
import { rangeOf } from "#domain/statistics.ts";
import { figures } from "#queue/postgres/depth.ts";
import { depthOf } from "#queue/postgres/depth-of.ts";
import { listPlaces } from "#queue/postgres/moves.ts";
import { readCosts } from "#record/costs.ts";
import { readFeedStanding } from "#record/feed-standing.ts";
import { readLedger, readWaiting } from "#record/ledger.ts";
import { readStatistics } from "#record/statistics.ts";
import { foldTallies } from "#steps/planned/fold-tallies.ts";
import type { Queryable } from "#store/connection/database.ts";
import { feedDatabase } from "../support/feed.ts";
import { fillMany } from "../support/many.ts";

/** Adds up what its statements look at, functions that they call included. */
function counting(db: pg.Pool): { db: Queryable; blocks: () => number } {
  let blocks = 0;
  const query = async (given: string | pg.QueryConfig, values: unknown[] = []) => {
    const { text, values: own = values } = typeof given === "string" ? { text: given, values } : given;
    const { rows } = await db.query(`explain (analyze, buffers, format json) ${text}`, own);
    const { Plan: plan } = rows[0]["QUERY PLAN"][0];
    blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    return db.query(text, own);
  };
  return { db: { query } as unknown as Queryable, blocks: () => blocks };
}

const sizeOf = async (db: pg.Pool): Promise<number> =>
  (
    await db.query(`select sum(pg_relation_size(c.oid) / 8192)::int as n from pg_class c
      where c.relnamespace = 'carillon'::regnamespace and c.relkind = 'r' and c.relname ~ '^(notifications|events|ready|later)'`)
  ).rows[0].n;

test("what people look at all the time looks at a small part of a million rows", { timeout: 600_000 }, async (t) => {
  const { db } = await feedDatabase(t);
  while (!(await foldTallies(db))?.isAtEnd);
  const some = { tenant: 1, ended: 300_000, ready: 100_000, later: 50_000 };
  await fillMany(db, some);
  await db.query("insert into carillon.tenants (id, name) overriding system value values (2, 'small')");
  await fillMany(db, { tenant: 2, ended: 10, ready: 5, later: 5 });
  // As if it had been counted when it happened: that is another test's.
  for (const [tenant, { ended, ready, later }] of [
    [1, some],
    [2, { ended: 10, ready: 5, later: 5 }],
  ] as const) {
    await db.query(
      `insert into carillon.tally_lines select $1, g.grain, case g.grain when 'ever' then '-infinity' else date_trunc(g.grain, carillon.now(), 'UTC') end, 'console',
         lane, case l.event when 'attempt' then 'console' else '' end, l.event, l.was, l.becomes, '', l.n / 4, 0, '{}'
       from (values ('minute'), ('hour'), ('day'), ('ever')) as g(grain), generate_series(0, 3) as lane,
         (values ('accepted', '', '', $2::bigint), ('attempt', 'processing', 'sent', $3::bigint)) as l(event, was, becomes, n)`,
      [tenant, ended + ready + later, ended],
    );
  }
  await db.query("update carillon.tallied set tenant = 2147483647, id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'");
  await db.query("vacuum analyze");
  const whole = await sizeOf(db);
  assert.ok(whole > 15_000, `the tables have ${whole} blocks`);

  const range = rangeOf({ step: "PT1M" }, new Date());
  assert.ok(!Array.isArray(range));
  const now = new Date();
  const month = spansOf({ since: new Date(now.getTime() - 30 * 86_400_000), until: now }, now);
  const looks: { [name: string]: [most: number, look: (on: Queryable) => Promise<unknown>] } = {
    ledger: [2_000, (on) => readLedger(on, 1)],
    "the ledger of a small one": [500, (on) => readLedger(on, 2)],
    queue: [8_000, (on) => depthOf(on, 1, 10_000)],
    "the queue of a small one": [500, (on) => depthOf(on, 2, 10_000)],
    waiting: [200, (on) => readWaiting(on, 1)],
    metrics: [8_000, (on) => figures(on)],
    feed: [1_000, (on) => readFeedStanding(on)],
    statistics: [500, (on) => readStatistics(on, { ...range, by: ["channel", "status"], tenant: 1, most: 100 })],
    costs: [500, (on) => readCosts(on, 1, "provider", month)],
  };
  for (const [name, [most, look]] of Object.entries(looks)) {
    const on = counting(db);
    await look(on.db);
    assert.ok(on.blocks() <= most, `${name} looks at ${on.blocks()} blocks of ${whole}`);
  }
  const { accepted, waiting, sent, isEstimate } = await readLedger(db, 1);
  assert.deepEqual([accepted, waiting, sent, isEstimate], [450_000, 150_000, 300_000, true]);
  const small = await readLedger(db, 2);
  assert.deepEqual([small.waiting, small.isEstimate], [10, false]);
  const { queued, scheduled } = await depthOf(db, 1, 10_000);
  assert.deepEqual([queued.normal, scheduled.low], [10_001, 10_001]);
  assert.deepEqual((await depthOf(db, 2, 10_000)).queued, { urgent: 1, high: 2, normal: 1, low: 1 });
});

test("nor does it look at more where all that waits is in one lane", { timeout: 600_000 }, async (t) => {
  const { db } = await feedDatabase(t);
  while (!(await foldTallies(db))?.isAtEnd);
  await db.query(
    `insert into carillon.ready (priority, seq, tenant, id, attempt, pool)
     select 2, n, 1, gen_random_uuid(), 0, 1 from generate_series(1, 300000) n`,
  );
  await db.query("vacuum analyze");
  const whole = await sizeOf(db);
  const looks: { [name: string]: (on: Queryable) => Promise<unknown> } = {
    ledger: (on) => readLedger(on, 1),
    queue: (on) => depthOf(on, 1, 10_000),
    metrics: (on) => figures(on),
    places: (on) => listPlaces(on, 10_000),
  };
  for (const [name, look] of Object.entries(looks)) {
    const on = counting(db);
    await look(on.db);
    assert.ok(on.blocks() <= whole / 4, `${name} looks at ${on.blocks()} blocks of ${whole}`);
  }
  assert.equal((await depthOf(db, 1, 10_000)).queued.normal, 10_001);
  assert.deepEqual(await listPlaces(db, 10_000), [
    { name: "postgres", waiting: 10_000, isEstimate: true, isCurrent: true },
  ]);
  assert.equal((await listPlaces(db, 300_000))[0]?.isEstimate, false);
});
