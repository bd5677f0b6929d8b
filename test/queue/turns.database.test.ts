// What is PostgreSQL's alone about turns: claims that meet, what was remembered of flows that are empty, and flows without number.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt } from "#domain/attempt.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import type { Queue } from "#queue/queue.ts";
import { type Database, openDatabase, type Queryable } from "#store/connection/database.ts";
import { migrate } from "#store/connection/migrate.ts";
import { freshDatabase } from "../support/postgres.ts";

const LEASE_MS = 30_000;
const CHANNELS = "array['email', 'push', 'sms', 'slack', 'webhook', 'inbox', 'console', 'file']";

type Under = { db: Database; queue: Queue };

/** Accepts so many for each of these tenants, which are made where they are missing. */
async function accept(db: Database, tenants: [from: number, to: number], count: number, more: Accepted = {}) {
  const { channels = 1, dueInMs = null } = more;
  await db.own.query(
    "insert into carillon.tenants (id, name) overriding system value select n, 't' || n from generate_series($1::int, $2::int) n on conflict do nothing",
    tenants,
  );
  await db.own.query(
    `select carillon.accept((select json_agg(json_build_object('i', carillon.new_id(), 't', t, 'c', c, 'p', 2,
        'd', now() + $5 * interval '1 ms', 'r', json_build_object('channel', c, 'content', '{}'::json)) order by n, t)
      from generate_series($1::int, $2::int) t, generate_series(1, $3::int) n, lateral (select (${CHANNELS})[1 + n % $4] as c) c), false)`,
    [...tenants, count, channels, dueInMs],
  );
}
type Accepted = { channels?: number; dueInMs?: number };

async function withDatabase(act: (under: Under) => Promise<void>) {
  const database = await freshDatabase();
  await migrate(database.url);
  const db = openDatabase({ url: database.url, acceptConnections: 1, connections: 6, onError: () => {} });
  try {
    await act({ db, queue: createPostgresQueue(db.work, () => 0) });
  } finally {
    await db.close();
    await database.drop();
  }
}

const sizes = (claims: readonly Attempt[][]) => claims.map(({ length }) => length);

/** Claims the first hundred and commits nothing, until it is told to. */
async function claimOpenly(db: Database) {
  const other = await db.own.connect();
  await other.query("begin");
  const claimed = await createPostgresQueue(other, () => 0).claim(1, 100, LEASE_MS);
  assert.equal(claimed.length, 100);
  let isOpen = true;
  return async () => {
    if (!isOpen) return;
    isOpen = false;
    await other.query("commit");
    other.release();
  };
}

test("a claim that meets another in many tenants goes on with those behind", () =>
  withDatabase(async ({ db }) => {
    await accept(db, [1, 400], 1);
    const commit = await claimOpenly(db);
    const claims: Attempt[][] = [];
    for (let n = 0; n < 3; n++) claims.push(await createPostgresQueue(db.work, () => 0).claim(2, 100, LEASE_MS));
    await commit();
    assert.deepEqual(sizes(claims), [100, 100, 100]);
  }));

test("a claim that meets another in the channels of one tenant waits for it, and is not empty", () =>
  withDatabase(async ({ db }) => {
    await accept(db, [1, 1], 400, { channels: 4 });
    const commit = await claimOpenly(db);
    let asked = 0;
    const query = async (text: string) => {
      if (++asked === 2) await commit();
      return db.work.query(text);
    };
    const claimed = await createPostgresQueue({ query } as Queryable, () => 0).claim(2, 100, LEASE_MS);
    await commit();
    assert.equal(claimed.length, 100);
  }));

test("flows that were drained a moment ago hide nothing of those behind them", () =>
  withDatabase(async ({ db, queue }) => {
    await accept(db, [1, 300], 1);
    await accept(db, [201, 300], 1);
    const claims: Attempt[][] = [];
    for (let n = 0; n < 5; n++) claims.push(await queue.claim(1, 100, LEASE_MS));
    assert.deepEqual(sizes(claims), [100, 100, 100, 100, 0]);
  }));

test("what a commit accepts has numbers that follow each other, whoever accepts meanwhile; in a larger one than there are in a block each has its own", () =>
  withDatabase(async ({ db }) => {
    await Promise.all([1, 2, 3].map((tenant) => accept(db, [tenant, tenant], 1_000)));
    await accept(db, [4, 4], 5_000);
    const { rows } = await db.own.query<{ first: number; last: number; n: number }>(
      "select min(seq)::float8 as first, max(seq)::float8 as last, count(distinct seq)::int as n from carillon.ready group by tenant order by tenant",
    );
    assert.deepEqual(
      rows.map(({ first, last, n }) => [n, last - first + 1 === n]),
      [
        [1_000, true],
        [1_000, true],
        [1_000, true],
        [5_000, false],
      ],
    );
    const { rows: order } = await db.own.query("select from carillon.ready where seq > carillon.last_seq()");
    assert.equal(order.length, 0);
  }));

test("claims are planned once for a connection, not each time", () =>
  withDatabase(async ({ db }) => {
    await accept(db, [1, 1], 100);
    const connection = await db.work.connect();
    try {
      const queue = createPostgresQueue(connection, () => 0);
      for (let n = 0; n < 8; n++) await queue.claim(1, 10, LEASE_MS);
      const { rows } = await connection.query(
        "select custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements where name = 'carillon-claim'",
      );
      assert.deepEqual(rows, [{ custom: 0, generic: 8 }]);
    } finally {
      connection.release();
    }
  }));

test("after a claim of what was due, the rest goes on first in, first out", () =>
  withDatabase(async ({ db, queue }) => {
    await accept(db, [1, 1], 5);
    await accept(db, [1, 1], 10, { dueInMs: 3_600_000 });
    await accept(db, [1, 1], 10);
    await db.own.query("update carillon.later set due_at = now() - interval '1 s'");
    const seqs = async (count: number) => (await queue.claim(1, count, LEASE_MS)).map(({ seq }) => seq);
    const due = await seqs(10);
    const ready = await seqs(5);
    assert.ok(Math.min(...due) > Math.max(...ready));
    assert.deepEqual(ready, [1, 2, 3, 4, 5]);
  }));

test("a burst that is due hides nobody's, however many wait for another time", () =>
  withDatabase(async ({ db, queue }) => {
    await accept(db, [1, 1], 3_000, { dueInMs: 3_600_000 });
    await db.own.query("update carillon.later set due_at = now() - interval '1 h'");
    await accept(db, [2, 4_000], 1, { dueInMs: 3_600_000 });
    await accept(db, [4_001, 4_001], 3, { dueInMs: 3_600_000 });
    await accept(db, [4_002, 6_000], 1, { dueInMs: 3_600_000 });
    await db.own.query("update carillon.later set due_at = now() - interval '1 s' where tenant = 4001");
    let n = 0;
    while (!(await queue.claim(1, 50, LEASE_MS)).some(({ tenant }) => tenant === 4_001))
      assert.ok(++n < 59, "it waits behind the burst");
  }));

/** What comes after it has long turns: of what nothing is known yet, they are short. */
async function claimOfAnother(db: Database, queue: Queue) {
  await accept(db, [3_000, 3_000], 1);
  assert.equal((await queue.claim(1, 1, LEASE_MS, { ranks: [2], tenants: ["t3000"] })).length, 1);
}

test("of many tenants a large claim takes long turns, by weight to the last one", () =>
  withDatabase(async ({ db, queue }) => {
    const heavy = 7;
    await accept(db, [1, 100], 100);
    await accept(db, [heavy, heavy], 200);
    await claimOfAnother(db, queue);
    await db.own.query("update carillon.tenants set weight = 3 where id = $1", [heavy]);
    const taken = new Map<number, number>();
    const tenantsOf: number[] = [];
    for (let n = 0; n < 6; n++) {
      const attempts = await queue.claim(1, 1_000, LEASE_MS);
      assert.equal(attempts.length, 1_000);
      for (const { tenant } of attempts) taken.set(tenant, (taken.get(tenant) ?? 0) + 1);
      tenantsOf.push(new Set(attempts.map(({ tenant }) => tenant)).size);
    }
    // A round is of 102 turns of 50, and six claims are 120 turns.
    const turns = (tenant: number) => (tenant <= 16 ? 2 : 1) * (tenant === heavy ? 3 : 1);
    for (const [tenant, count] of taken) assert.equal(count, 50 * turns(tenant), `tenant ${tenant}`);
    assert.deepEqual([taken.size, tenantsOf], [100, [18, 20, 20, 20, 20, 18]]);
  }));

/** A queue, and how many looks its claims took. */
function countingLooks(db: Database) {
  const counted = { looks: 0 };
  const query = (text: { name?: string }) => {
    if (text.name === "carillon-claim") counted.looks++;
    return db.work.query(text as never);
  };
  return { counted, queue: createPostgresQueue({ query } as unknown as Queryable, () => 0) };
}

test("of a thousand tenants with one each a claim takes all, with one look once it knows", () =>
  withDatabase(async ({ db }) => {
    const { counted, queue } = countingLooks(db);
    const counts: number[] = [];
    for (let n = 0; n < 3; n++) {
      await accept(db, [1, 1_000], 1);
      counted.looks = 0;
      assert.equal((await queue.claim(1, 1_000, LEASE_MS)).length, 1_000);
      counts.push(counted.looks);
    }
    assert.deepEqual(counts, [2, 1, 1]);
  }));

test("few looks fill a claim, also where the first tenants have much and the others one each, or a higher lane has much", () =>
  withDatabase(async ({ db }) => {
    for (const lane of [2, 0]) {
      await accept(db, [1, 19], 45);
      await db.own.query("update carillon.ready set priority = $1", [lane]);
      await accept(db, [20, 2_000], 1);
      const { counted, queue } = countingLooks(db);
      await claimOfAnother(db, queue);
      counted.looks = 0;
      assert.equal((await queue.claim(1, 1_000, LEASE_MS)).length, 1_000);
      assert.ok(counted.looks <= 4, `${counted.looks} looks with much in lane ${lane}`);
      await db.own.query("truncate carillon.ready, carillon.claims");
    }
  }));

test("a claim that meets another in a thousand tenants goes on with those behind", () =>
  withDatabase(async ({ db }) => {
    await accept(db, [1, 1_300], 1);
    const other = await db.own.connect();
    await other.query("begin");
    assert.equal((await createPostgresQueue(other, () => 0).claim(1, 1_000, LEASE_MS)).length, 1_000);
    try {
      assert.equal((await createPostgresQueue(db.work, () => 0).claim(2, 1_000, LEASE_MS)).length, 300);
    } finally {
      await other.query("commit");
      other.release();
    }
  }));

test("what was accepted before there were flows is cancelled, moved and kept like all the rest", () =>
  withDatabase(async ({ db, queue }) => {
    await accept(db, [1, 1], 3);
    // As it is after the schema has changed.
    await db.own.query("update carillon.notifications set pool = null");
    await db.own.query("update carillon.ready set pool = 0");
    const attempts = await queue.claim(1, 3, LEASE_MS);
    await queue.settle(attempts.map((attempt) => ({ attempt, settlement: { to: "queued" } })));
    const [one, other, third] = attempts.map(({ id }) => id) as [string, string, string];
    assert.equal(await queue.cancel(db.own, 1, one), true);
    assert.equal((await queue.move(db.own, 1, other, { rank: 0 })).kind, "done");
    const { rows } = await db.own.query(
      `select right(c.relname, -14) as part from carillon.notifications n join pg_class c on c.oid = n.tableoid where id = $1`,
      [third],
    );
    const { rows: thinned } = await db.own.query(
      "select deleted from carillon.thin_out($1, now() + interval '1 day', 0, '00000000-0000-0000-0000-000000000000', 100)",
      [rows[0].part],
    );
    assert.deepEqual(thinned, [{ deleted: 1 }]);
    const { rows: left } = await db.own.query("select id from carillon.notifications");
    assert.deepEqual(left.map(({ id }) => id).sort(), [other, third].sort());
  }));

test("to plan a claim costs no more where much waits, whether the start of it is known or not", () =>
  withDatabase(async ({ db }) => {
    await accept(db, [1, 1], 20_000);
    // As a vacuum leaves it: all of one lane, says the statistics.
    await db.own.query("analyze carillon.ready");
    const session = await db.own.connect();
    const pagesOf = async (heads: string) => {
      const plan = `select * from carillon.queue_plan(100, '{0,1,2,3}', '{1,1,1,1}', '{0,0,0,0}', 200, null, null, '{}', null, ${heads})`;
      // The first time the plans of what it asks are made.
      await session.query(plan);
      const { rows } = await session.query(`explain (analyze, buffers, format json) ${plan}`);
      return rows[0]["QUERY PLAN"][0].Plan["Shared Hit Blocks"] + rows[0]["QUERY PLAN"][0].Plan["Shared Read Blocks"];
    };
    const unknown = await pagesOf("null, '{}', '{}', '{}'");
    const known = await pagesOf("2::smallint, '{1}', array[carillon.queue_pool('email', 0::smallint)], '{1}'");
    session.release();
    const { rows } = await db.own.query("select pg_relation_size('carillon.ready_pkey') / 8192 as pages");
    assert.ok(rows[0].pages > 60, `${rows[0].pages} pages of the lane`);
    assert.ok(Math.max(unknown, known) < 60, `${unknown} and ${known} pages read`);
  }));
