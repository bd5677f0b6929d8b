// The PostgreSQL engine passes the suite of all engines, and does not slow down where it must not.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import type { Attempt } from "#domain/attempt.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { claimOf } from "#queue/postgres/handle.ts";
import type { Queue } from "#queue/queue.ts";
import { findHistory } from "#record/events.ts";
import { endedBy } from "#steps/walk/end.ts";
import { type Database, openDatabase } from "#store/connection/database.ts";
import { migrate } from "#store/connection/migrate.ts";
import { queueConformance } from "../conformance/queue.ts";
import { freshDatabase } from "../support/postgres.ts";
import { setUpQueue } from "../support/queue-on-postgres.ts";
import { until } from "../support/until.ts";

const monotonic = () => performance.now();

queueConformance("postgres", () => setUpQueue());

const OTHER_SESSIONS = `select from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`;
const READ_FROM_END_TO_END = `select relname, seq_tup_read::int as read, n_tup_del::int as deleted
  from pg_stat_user_tables where schemaname = 'carillon'`;

test("in SQL too the queue's tables are named by what is the queue's alone", async () => {
  const database = await freshDatabase();
  await migrate(database.url);
  const admin = new pg.Client(database.url);
  await admin.connect();
  try {
    // Views are told with the schemas of what they name.
    await admin.query("set search_path = ''");
    const { rows } = await admin.query<{ name: string }>(
      `select name from (
         select proname::text as name, prosrc as text from pg_proc where pronamespace = 'carillon'::regnamespace
         union all select viewname, definition from pg_views where schemaname = 'carillon'
       ) named where text ~ '\\mcarillon\\.(ready|later|claims|leased|schedule|handoffs|handed)\\M' order by name`,
    );
    const names = rows.map(({ name }) => name);
    assert.ok(names.includes("queue_standing"), "the test finds them where they are");
    // The other three are views of the tables themselves.
    assert.deepEqual(
      names.filter((name) => !name.startsWith("queue_")),
      ["handed", "leased", "schedule"],
    );
  } finally {
    await admin.end();
    await database.drop();
  }
});

test("no verb reads a queue table from end to end, whatever the statistics say", async () => {
  const database = await freshDatabase();
  await migrate(database.url);
  const db = openDatabase({ url: database.url, acceptConnections: 1, connections: 2, onError: () => {} });
  const admin = new pg.Client(database.url);
  await admin.connect();
  try {
    // Statistics of empty tables, then 20,000 rows: the plans that sank other queues.
    await admin.query("analyze carillon.ready, carillon.later, carillon.claims, carillon.notifications");
    await admin.query(`select carillon.accept((select json_agg(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console',
      'p', n % 4, 'r', '{"channel":"console","content":{}}'::json)) from generate_series(1, 20000) n), false)`);
    await admin.query(`with moved as (delete from carillon.ready where seq % 2 = 0 returning *)
      insert into carillon.later (seq, due_at, priority, tenant, id)
      select seq, now() + (seq - 15000) * interval '1 s', priority, tenant, id from moved`);
    // Figures are told up to a second late, or when a connection ends: ours before we begin, the queue's before we look.
    await admin.query("select pg_stat_force_next_flush()");
    await admin.query("select pg_stat_reset()");
    const queue = createPostgresQueue(db.work, monotonic);
    for (let n = 0; n < 8; n++) {
      const attempts = await queue.claim(1, 500, 30_000);
      assert.equal(attempts.length, 500);
      await queue.settle(
        attempts.map((attempt) => ({
          attempt,
          settlement: { to: "sent" },
          line: { outcome: "accepted" },
        })),
      );
    }
    await db.close();
    await until(async () => ((await admin.query(OTHER_SESSIONS)).rowCount === 0 ? true : undefined));
    const { rows } = await admin.query(READ_FROM_END_TO_END);
    assert.ok(rows.find(({ relname }) => relname === "ready").deleted > 0, "the figures have come");
    assert.deepEqual(
      rows.filter(({ read }) => read > 5000),
      [],
    );
  } finally {
    await admin.end();
    await database.drop();
  }
});

/** A clock that the test sets, and what the queue said is gone from the record. */
type Around = { now: number; gone: string[] };

/** A queue with that many waiting. */
async function withQueue(rows: number, act: (queue: Queue, around: Around, db: Database) => Promise<void>) {
  const database = await freshDatabase();
  await migrate(database.url);
  const db = openDatabase({ url: database.url, acceptConnections: 1, connections: 2, onError: () => {} });
  try {
    await db.own.query(
      `select carillon.accept((select json_agg(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console',
        'p', 2, 'r', '{"channel":"console","content":{}}'::json)) from generate_series(1, $1) n), false) where $1 > 0`,
      [rows],
    );
    const around: Around = { now: 0, gone: [] };
    const onGone = (ids: readonly string[]) => void around.gone.push(...ids);
    await act(
      createPostgresQueue(db.work, () => around.now, { onGone }),
      around,
      db,
    );
  } finally {
    await db.close();
    await database.drop();
  }
}
const seqsOf = (attempts: readonly Attempt[]) => attempts.map(({ seq }) => seq);
const handBack = (queue: Queue, attempts: readonly Attempt[]) =>
  queue.settle(attempts.map((attempt) => ({ attempt, settlement: { to: "queued" } })));

test("in a backlog, what came back to its lane is overtaken for 200 ms at most", () =>
  withQueue(200, async (queue, clock) => {
    const first = await queue.claim(1, 20, 30_000);
    clock.now = 200;
    const second = await queue.claim(1, 20, 30_000);
    await handBack(queue, second);
    assert.deepEqual(seqsOf(await queue.claim(1, 20, 30_000)), seqsOf(second));
    await handBack(queue, first);
    clock.now = 399;
    const third = seqsOf(await queue.claim(1, 20, 30_000));
    assert.ok((third[0] as number) > (second[19]?.seq as number));
    clock.now = 400;
    assert.deepEqual(seqsOf(await queue.claim(1, 20, 30_000)), seqsOf(first));
  }));

test("what came back to its lane is claimed at once where there is no backlog", () =>
  withQueue(50, async (queue, clock) => {
    const first = await queue.claim(1, 20, 30_000);
    clock.now = 200;
    assert.equal((await queue.claim(1, 20, 30_000)).length, 20);
    await handBack(queue, first);
    assert.equal((await queue.claim(1, 20, 30_000)).length, 10);
    assert.deepEqual(seqsOf(await queue.claim(1, 20, 30_000)), seqsOf(first));
  }));

test("an urgent one is claimed first in a backlog too, as soon as it is there", () =>
  withQueue(200, async (queue, _, db) => {
    await queue.claim(1, 20, 30_000);
    await queue.claim(1, 20, 30_000);
    await db.own.query(
      `select carillon.accept(json_build_array(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console',
        'p', 0, 'r', '{"channel":"console","content":{}}'::json)), false)`,
    );
    const [one, other] = await queue.claim(1, 20, 30_000);
    assert.deepEqual([one?.rank, other?.rank], [0, 2]);
  }));

test("in a backlog, what came back to a higher lane goes first at once", () =>
  withQueue(200, async (queue, clock, db) => {
    await db.own.query(
      `select carillon.accept(json_build_array(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console',
        'p', 0, 'r', '{"channel":"console","content":{}}'::json)), false)`,
    );
    // Older than all others, as if its commit had come late.
    await db.own.query("update carillon.ready set seq = 0 where priority = 0");
    const first = await queue.claim(1, 20, 30_000);
    assert.equal(first[0]?.rank, 0);
    clock.now = 200;
    await queue.claim(1, 20, 30_000);
    await handBack(queue, first.slice(0, 1));
    const [one] = await queue.claim(1, 20, 30_000);
    assert.equal(one?.id, first[0]?.id);
  }));

test("a transaction that somebody holds open does not make claims walk past all that was claimed since", () =>
  withQueue(10_000, async (queue, clock, db) => {
    const walked = async () => {
      // One connection has made all the claims.
      await db.work.query("select pg_stat_force_next_flush()");
      const { rows } = await db.own.query<{ n: number }>(
        "select sum(idx_tup_read)::int as n from pg_stat_user_indexes where relid = 'carillon.ready'::regclass",
      );
      return rows[0]?.n ?? 0;
    };
    const other = await db.own.connect();
    try {
      await other.query("begin isolation level repeatable read");
      await other.query("select count(*) from carillon.ready");
      const before = await walked();
      for (let n = 0; n < 100; n++) {
        assert.equal((await queue.claim(1, 100, 30_000)).length, 100);
        clock.now += 10;
      }
      const entries = (await walked()) - before;
      assert.ok(entries > 10_000 && entries < 100_000, `${entries} entries read for 10,000 rows`);
    } finally {
      other.release(true);
    }
  }));

test("what others update by SQL while it is claimed is claimed once", () =>
  withQueue(3_000, async (queue, _, db) => {
    const TOTAL = 3_000;
    await db.own.query(
      `with moved as (delete from carillon.ready returning *) insert into carillon.later (seq, due_at, priority, tenant, id)
       select seq, now() - interval '1 s', priority, tenant, id from moved`,
    );
    let isOver = false;
    const update = async () => {
      while (!isOver) {
        await db.own.query(
          "update carillon.later set due_at = due_at - interval '1 ms' where seq % 7 = $1 and seq < 300",
          [Math.floor(Math.random() * 7)],
        );
      }
    };
    const updating = update();
    const left = async () => (await queue.depth(db.own)).depth.normal;
    while ((await left()) > 0) await queue.claim(1, 20, 30_000);
    isOver = true;
    await updating;
    const { rows } = await db.own.query(
      "select count(*)::int as claimed, count(distinct seq)::int as different from carillon.leased",
    );
    assert.deepEqual(rows, [{ claimed: TOTAL, different: TOTAL }]);
  }));

const claims = async (db: Database) => (await db.own.query("select from carillon.claims")).rowCount;

test("what is gone from the record is not attempted but let go, and those around it are settled as themselves", () =>
  withQueue(300, async (queue, told, db) => {
    const { rows } = await db.own.query<{ id: string }>("select id from carillon.ready order by seq");
    const ids = rows.map(({ id }) => id);
    const gone = [ids[0], ids[120], ids[299]];
    await db.own.query("delete from carillon.notifications where id = any ($1::uuid[])", [gone]);
    const attempts = await queue.claim(1, 300, 30_000);
    assert.deepEqual(
      attempts.map(({ id }) => id),
      ids.filter((id) => !gone.includes(id)),
    );
    const answers = await queue.settle(
      attempts.map((attempt) => ({ attempt, settlement: { to: "sent" }, line: { outcome: "accepted" } })),
    );
    assert.ok(answers.every(Boolean));
    assert.deepEqual([told.gone, await claims(db), (await queue.depth(db.own)).processing], [gone, 0, 0]);
  }));

test("a claim of which all is gone from the record ends at once", () =>
  withQueue(3, async (queue, _, db) => {
    await db.own.query("delete from carillon.notifications");
    assert.deepEqual(await queue.claim(1, 3, 30_000), []);
    assert.equal(await claims(db), 0);
  }));

test("what went from the record while it was held is let go by the sweep, and the claim ends with the rest of it", () =>
  withQueue(3, async (queue, told, db) => {
    const ids = (await queue.claim(1, 3, 0)).map(({ id }) => id);
    await db.own.query("delete from carillon.notifications where id = $1", [ids[1]]);
    const swept = await queue.sweep(2, 10, 30_000);
    assert.deepEqual(
      swept.map(({ id }) => id),
      [ids[0], ids[2]],
    );
    assert.equal((await queue.depth(db.own)).processing, 2);
    await queue.settle(swept.map((attempt) => ({ attempt, settlement: { to: "failed" } })));
    assert.deepEqual([told.gone, await claims(db)], [[ids[1]], 0]);
  }));

test("a claim that is all gone from the record is not swept for ever", () =>
  withQueue(3, async (queue, _, db) => {
    await queue.claim(1, 3, 0);
    await db.own.query("delete from carillon.notifications");
    assert.deepEqual(await queue.sweep(2, 10, 0), []);
    assert.equal(await claims(db), 0);
  }));

test("tokens grow from claim to claim, and one that nobody drew settles nothing", () =>
  withQueue(3, async (queue) => {
    const attempts: Attempt[] = [];
    for (let n = 0; n < 3; n++) attempts.push(...(await queue.claim(1, 1, 30_000)));
    const tokens = attempts.map(({ lease }) => claimOf(lease).token);
    assert.deepEqual(
      tokens,
      [...new Set(tokens)].sort((a, b) => a - b),
    );
    const [attempt] = attempts as [Attempt];
    const madeUp = { ...attempt, lease: { ...attempt.lease, handle: { token: 999_999_999, size: 1 } } };
    assert.deepEqual(await queue.settle([{ attempt: madeUp, settlement: { to: "sent" } }]), [false]);
  }));

const WORDS = [
  'a "word" \\ two',
  "null",
  "NULL",
  "",
  "{a,b}",
  "one, two",
  "日本語 🔔",
  "tab\tand\nline",
  "'",
  "0",
  " x ",
];

test("whatever an attempt says comes into the record as it was said", () =>
  withQueue(WORDS.length, async (queue, _, db) => {
    const attempts = await queue.claim(1, WORDS.length, 30_000);
    const settled = attempts.map((attempt, n) => ({
      attempt,
      settlement: { to: "failed" as const },
      line: { outcome: "rejected", provider: WORDS[n] ?? "", error: WORDS[n] ?? "", detail: { code: WORDS[n] } },
    }));
    assert.ok((await queue.settle(settled)).every(Boolean));
    for (const [n, { id }] of attempts.entries()) {
      const event = (await findHistory(db.own, 1, id)).events.find(({ type }) => type === "attempt");
      assert.ok(event?.type === "attempt");
      assert.deepEqual([event.provider, event.error, event.detail], [WORDS[n], WORDS[n], { code: WORDS[n] }]);
    }
  }));

test("a receipt is kept with the account that carried the message, the tenant's own or the deployment's", () =>
  withQueue(3, async (queue, _, db) => {
    const attempts = await queue.claim(1, 3, 30_000);
    const provider = (owner?: number) => ({
      name: "mail",
      channels: [],
      capabilities: { batch: 1, attachments: false, tracking: true, reconciles: false },
      send: () => ({ kind: "accepted" as const }),
      ...(owner !== undefined && { owner }),
    });
    const by = [provider(), provider(1), undefined];
    const settled = attempts.map((attempt, n) =>
      endedBy(attempt, { outcome: { kind: "accepted", receipt: "same" }, provider: by[n] }, { to: "sent" }, 1),
    );
    assert.ok((await queue.settle(settled)).every(Boolean));
    const { rows } = await db.own.query(
      "select provider, owner, receipt, notification_id as id from carillon.receipts order by owner",
    );
    assert.deepEqual(rows, [
      { provider: "mail", owner: 0, receipt: "same", id: attempts[0]?.id },
      { provider: "mail", owner: 1, receipt: "same", id: attempts[1]?.id },
    ]);
  }));

test("a claim takes no more than it can hold: of large requests fewer, in order, and none is left behind", () =>
  withQueue(0, async (queue, _, db) => {
    // Long, and short where it is stored.
    await db.own.query(
      `select carillon.accept((select json_agg(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console', 'p', 2,
        'r', json_build_object('channel', 'console', 'content', json_build_object('body', repeat('a', 200000)))))
        from generate_series(1, 150)), false)`,
    );
    const all = (await db.own.query("select seq::float8 as seq from carillon.ready order by seq")).rows;
    const first = await queue.claim(1, 1000, 30_000);
    assert.equal(first.length, Math.ceil((16 * 1024 * 1024) / 200_051), "as many as come to 16 MiB, and no more");
    const second = await queue.claim(1, 1000, 30_000);
    assert.deepEqual(seqsOf([...first, ...second]), seqsOf(all));
    assert.equal((await queue.claim(1, 1000, 30_000)).length, 0);
  }));
