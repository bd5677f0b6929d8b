// Where a follower could miss something: days that were dropped, a database that was restored, two that follow under one name.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { comparePositions, startOf } from "#domain/fact.ts";
import { readEpoch, readFeed } from "#record/feed.ts";
import { keepFeed } from "#record/feed-days.ts";
import { findFeedEnd, findFeedSince } from "#record/feed-places.ts";
import { moveFollower, readFollower } from "#record/followers.ts";
import type { Queryable } from "#store/connection/database.ts";
import { migrate } from "#store/connection/migrate.ts";
import { accept, attempt, feedDatabase, follow, makeId, namesOf } from "../support/feed.ts";
import { testServer } from "../support/postgres.ts";

const keep = async (db: Queryable, days: number) => {
  for await (const _ of keepFeed(db, days, 1_000));
};
const daysOf = async (db: Queryable) =>
  (
    await db.query<{ day: string }>(
      "select inhrelid::regclass::text as day from pg_inherits where inhparent = 'carillon.feed'::regclass order by 1",
    )
  ).rows.map(({ day }) => day);
/** As if all that is there had happened so much earlier. */
const age = (db: Queryable, days: number) =>
  db.query("update carillon.feed set at = at - $1 * interval '1 day'", [days]);

test("days that are over are dropped, and who had not read them is told so; who had goes on", async (t) => {
  const { db } = await feedDatabase(t);
  const [a, b, c] = [makeId(), makeId(), makeId()];
  await db.query("select carillon.make_feed_day(carillon.now() - interval '10 days')");
  await accept(db, [a, b]);
  await age(db, 10);
  const read = await follow(db, { limit: 1, least: 2 });
  const half = read.facts[0]?.position ?? startOf(0);
  const made = await daysOf(db);
  await keep(db, 7);
  // The day, and yesterday's neighbour that was made with the schema.
  assert.equal((await daysOf(db)).length, made.length - 1);

  for (const after of [half, { ...half, ordinal: 0 }]) {
    const reset = await readFeed(db, { after, limit: 10 });
    assert.ok(reset.kind === "reset" && reset.reason === "forgotten", JSON.stringify(reset));
    assert.deepEqual(reset.next, startOf(half.epoch));
  }
  const long = await findFeedSince(db, new Date(Date.now() - 12 * 86_400_000));
  assert.ok("kind" in long && long.reason === "forgotten");
  await accept(db, [c]);
  for (const after of [read.next, startOf(half.epoch)]) {
    assert.deepEqual(namesOf((await follow(db, { after, limit: 10, least: 1 })).facts), [`accepted ${c}:0`]);
  }
});

test("what a clock wrote that was far off goes with its time too", async (t) => {
  const { db } = await feedDatabase(t);
  await accept(db, [makeId()]);
  const { next, facts } = await follow(db, { limit: 10, least: 1 });
  await age(db, 4_000);
  await keep(db, 7);
  assert.equal((await db.query("select from carillon.feed")).rowCount, 0);
  const after = { ...next, seq: next.seq - 1 };
  assert.equal((await readFeed(db, { after, limit: 10 })).kind, "reset");
  assert.equal((await readFeed(db, { after: next, limit: 10 })).kind, "page");
  assert.equal(facts.length, 1);
});

test("since an instant misses nothing that an older transaction told later", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const [before, early, late] = [makeId(), makeId(), makeId()];
  await accept(db, [before]);
  await age(db, 1);
  const open = await connect();
  await open.query("begin");
  await open.query("select pg_current_xact_id()");
  await accept(db, [late]);
  const { rows } = await db.query<{ now: Date }>("select carillon.now() as now");
  await accept(open, [early]);
  await open.query("commit");
  await follow(db, { limit: 10, least: 3 });
  const since = await findFeedSince(db, rows[0]?.now as Date);
  assert.ok(!("kind" in since));
  const names = namesOf((await follow(db, { after: since, limit: 10, least: 1 })).facts);
  assert.ok(names.includes(`accepted ${early}:0`) && !names.includes(`accepted ${before}:0`), names.join());
});

/** Something happens, and can be told, once it was looked where to begin. */
const afterLook = (db: Queryable, happens: () => Promise<void>): Queryable =>
  ({
    query: async (asked: string | { name: string }, ...values: unknown[]) => {
      const answer = await (db.query as (...given: unknown[]) => Promise<unknown>)(asked, ...values);
      if (typeof asked === "object" && asked.name === "carillon-feed-since") await happens();
      return answer;
    },
  }) as unknown as Queryable;

for (const earlier of [0, 1]) {
  test(`since now begins where it was looked, with ${earlier} before: what happens beside the look is told`, async (t) => {
    const { db } = await feedDatabase(t);
    const id = makeId();
    if (earlier > 0) await accept(db, [makeId()]);
    await age(db, 1);
    await follow(db, { limit: 10, least: earlier });
    const { rows } = await db.query<{ now: Date }>("select carillon.now() as now");
    const looking = afterLook(db, async () => {
      await accept(db, [id]);
      await follow(db, { limit: 10, least: earlier + 1 });
    });
    const since = await findFeedSince(looking, rows[0]?.now as Date);
    assert.ok(!("kind" in since));
    assert.deepEqual(namesOf((await follow(db, { after: since, limit: 10, least: 0 })).facts), [`accepted ${id}:0`]);
  });
}

test("who follows under one name goes on where the last one stopped, or where it would have had it not failed", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const ids = [makeId(), makeId()];
  await accept(db, ids);
  await follow(db, { limit: 10, least: 2 });
  const [first, second] = [await connect(), await connect()];
  await first.query("begin");
  const position = await readFollower(first, "test");
  const page = await readFeed(first, { after: position, limit: 1 });
  assert.deepEqual(namesOf(page.kind === "page" ? page.facts : []), [`accepted ${ids[0]}:0`]);
  await moveFollower(first, "test", page.next);
  await second.query("begin");
  const waiting = readFollower(second, "test");
  await first.query("commit");
  assert.deepEqual(await waiting, page.next);
  await moveFollower(second, "test", startOf(1));
  await second.query("rollback");
  assert.deepEqual(await readFollower(second, "test"), page.next);
});

const TABLES = ["epochs", "feed", "followers"];

/** A dump of what matters here: rows and the sequence, into a database of the same schema on another server. */
async function copyInto(from: Queryable, to: Queryable): Promise<void> {
  await to.query("truncate carillon.epochs, carillon.feed, carillon.followers");
  for (const table of TABLES) {
    const { rows } = await from.query<{ row: object }>(`select to_json(t) as row from carillon.${table} t`);
    await to.query(
      `insert into carillon.${table} ${table === "epochs" ? "overriding system value" : ""}
       select r.* from json_array_elements($1) as x(row), json_populate_record(null::carillon.${table}, x.row) r`,
      [JSON.stringify(rows.map(({ row }) => row))],
    );
  }
  const { rows } = await from.query("select nextval('carillon.feed_seq') as seq");
  await to.query("select setval('carillon.feed_seq', $1)", [rows[0].seq]);
  await to.query(
    "select setval(pg_get_serial_sequence('carillon.epochs', 'epoch'), (select max(epoch) from carillon.epochs))",
  );
}

test("a database that was restored into another cluster begins an epoch: from inside nothing is missed, from outside one is told", async (t) => {
  const { db } = await feedDatabase(t);
  const server = await testServer();
  await migrate(server.url);
  const restored = new pg.Pool({ connectionString: server.url, max: 4 });
  restored.on("error", () => {});
  t.after(async () => {
    await restored.end();
    await server.stop();
  });
  // Its ids are far ahead of those that a new cluster gives.
  await db.query(
    `create table burnt (); do $$ begin for n in 1..5000 loop begin insert into burnt default values; exception when others then end; end loop; end $$`,
  );
  const [a, b, c] = [makeId(), makeId(), makeId()];
  await accept(db, [a, b]);
  const read = await follow(db, { limit: 1, least: 2 });
  const half = read.facts[0]?.position ?? startOf(0);
  await readFollower(db, "test");
  await moveFollower(db, "test", half);
  await copyInto(db, restored);

  // Written before anybody has read, and so before the epoch has a number.
  await accept(restored, [c]);
  await attempt(restored, [c], "sent");
  const told = await follow(restored, { after: await readFollower(restored, "test"), limit: 1, least: 3 });
  assert.deepEqual(namesOf(told.facts).slice(0, 2), [`accepted ${b}:0`, `accepted ${c}:0`]);
  assert.match(namesOf(told.facts)[2] ?? "", /^sent /);
  assert.ok(told.next.epoch > half.epoch && told.next.key < half.key, "the ids went back");
  assert.ok(comparePositions(told.next, half) > 0);
  const page = await readFeed(restored, { after: read.next, limit: 10, tenant: 1 });
  assert.ok(page.epoch > half.epoch, "a position of the epoch before");
  assert.equal((await findFeedEnd(restored)).epoch, await readEpoch(restored));
});

test("a server that is started anew goes on with its epoch", async (t) => {
  const { db } = await feedDatabase(t);
  await accept(db, [makeId()]);
  const { next } = await follow(db, { limit: 10, least: 1 });
  // What a start changes.
  await db.query("update carillon.epochs set started_at = started_at - interval '1 day'");
  await accept(db, [makeId()]);
  const { facts } = await follow(db, { after: next, limit: 10, least: 1 });
  assert.deepEqual(
    facts.map(({ position }) => position.epoch),
    [next.epoch],
  );
});
