// Feeding a sink: one process at a time, page after page, moved on only by what was confirmed. At least once, nothing missing, whatever ends in between.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { comparePositions, type FactType, startOf } from "#domain/fact.ts";
import { readEpoch } from "#record/feed.ts";
import { findFeedEnd } from "#record/feed-places.ts";
import { findFollower, moveFollower } from "#record/followers.ts";
import { SinkFeeder, type SinkRound, type SinkWorld } from "#steps/brokers/feed-sink.ts";
import { ensureConnector, listConnectors, listRefusals, setConnectorPause } from "#store/connectors.ts";
import { accept, attempt, type FeedDatabase, feedDatabase, follow, makeId } from "../support/feed.ts";
import { gate, hang, nameOf, type ScriptedSink, scriptedSink } from "../support/scripted-sink.ts";
import { until } from "../support/until.ts";

const BUS = { kind: "sink", name: "bus" } as const;
const LONG_MS = 60_000;
const never = new AbortController().signal;

async function world(t: TestContext): Promise<FeedDatabase> {
  const database = await feedDatabase(t);
  await ensureConnector(database.db, BUS, "scripted");
  return database;
}

function feederOn(pool: pg.Pool, sink: ScriptedSink, more: Partial<SinkWorld> = {}): SinkFeeder {
  const { holder = "a process", onMissed = () => assert.fail("nothing is missed"), types, ...rest } = more;
  return new SinkFeeder({
    pool,
    name: "bus",
    sink,
    types,
    holder,
    onMissed,
    monotonic: () => performance.now(),
    ...rest,
  });
}

const ids = (count: number) => Array.from({ length: count }, () => makeId());
const accepted = (all: readonly string[]) => all.map((id) => `${id}:0`);
const position = async (db: pg.Pool) => findFollower(db, ["sink bus"]);
const row = async (db: pg.Pool) => (await listConnectors(db, "sink"))[0];

/** Round after round until so many are confirmed: others on the same server may hold up the feed. */
const fed = (feeder: SinkFeeder, sink: ScriptedSink, least: number) =>
  until(async () => {
    await feeder.round(never);
    return sink.confirmed.length >= least ? true : undefined;
  }, LONG_MS);
/** Until a page with something in it has come as far as the sink. */
async function begun(feeder: SinkFeeder, entered: Promise<unknown>): Promise<{ round: Promise<SinkRound> }> {
  for (;;) {
    const round = feeder.round(never);
    round.catch(() => {});
    const first = await Promise.race([entered.then(() => "entered"), round.then(() => "over")]);
    if (first === "entered") return { round };
  }
}

test("a new sink has everything that is kept, page after page, in order for each notification, and is counted", async (t) => {
  const { db } = await world(t);
  const all = ids(20);
  await accept(db, all);
  await attempt(db, all.slice(0, 10));
  await attempt(db, all.slice(0, 5), "sent");
  const sink = scriptedSink(4);
  const feeder = feederOn(db, sink);
  await fed(feeder, sink, 35);
  assert.equal(new Set(sink.confirmed).size, 35);
  assert.ok(sink.pages.every((page) => page.length <= 4));
  for (const id of all) {
    const numbers = sink.confirmed.filter((name) => name.startsWith(id)).map((name) => Number(name.split(":")[1]));
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
      id,
    );
  }
  const [first] = sink.pages.flat();
  assert.deepEqual([first?.tenant, first?.body.type], ["default", "accepted"]);
  const { carried, refused, movedAt, isRun } = (await row(db)) ?? {};
  assert.deepEqual([carried, refused, isRun], [35, 0, true]);
  assert.ok(movedAt);
  assert.equal((await feeder.round(never)).kind, "idle");
});

test("one process has a sink; another has it once the first resigns, and goes on where that was", async (t) => {
  const { db } = await world(t);
  const [one, two] = [scriptedSink(), scriptedSink()];
  const [first, second] = [feederOn(db, one, { holder: "one" }), feederOn(db, two, { holder: "two" })];
  const before = ids(3);
  await accept(db, before);
  await fed(first, one, 3);
  assert.equal((await second.round(never)).kind, "taken");
  await first.resign();
  const after = ids(2);
  await accept(db, after);
  await fed(second, two, 2);
  assert.deepEqual(two.confirmed, accepted(after));
  assert.equal((await first.round(never)).kind, "taken");
});

test("where whoever has it is gone, its lease runs out, and another hands over the same page again: nothing is missing", async (t) => {
  const { db, url } = await world(t);
  const all = ids(5);
  await accept(db, all);
  const [one, two] = [scriptedSink(3), scriptedSink(3)];
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const first = feederOn(pool, one, { holder: "one", leaseMs: 1_500 });
  await fed(first, one, 3);
  const held = gate();
  one.answer((facts, signal) => {
    held.deliver(facts, signal);
    return hang(facts, signal);
  });
  const { round } = await begun(first, held.entered);
  // It no longer reaches the database: as far as that can tell, it is dead.
  await pool.end();
  await assert.rejects(round, /lease could not be renewed/);
  const second = feederOn(db, two, { holder: "two" });
  await fed(second, two, 2);
  assert.deepEqual([...one.confirmed, ...two.confirmed], accepted(all));
  assert.deepEqual(one.pages.at(-1)?.map(nameOf), two.pages[0]?.map(nameOf), "the page that nobody confirmed");
});

test("whoever lost the lease is told to stop, and moves nothing, even if all was confirmed", async (t) => {
  const { db } = await world(t);
  await accept(db, ids(3));
  const sink = scriptedSink();
  const held = gate();
  sink.answer(held.deliver);
  const feeder = feederOn(db, sink, { holder: "one", leaseMs: 4_000 });
  const { round } = await begun(feeder, held.entered);
  const before = await position(db);
  await db.query(
    "update carillon.leaders set holder = 'two', term = term + 1, until = clock_timestamp() + interval '1 hour' where name = 'sink bus'",
  );
  const signal = await held.entered;
  await until(async () => (signal.aborted ? true : undefined), LONG_MS);
  assert.match(String(signal.reason), /another process/);
  held.open();
  assert.deepEqual(await round, { kind: "idle", carried: 0, refused: [] });
  assert.deepEqual(await position(db), before);
  assert.equal((await row(db))?.carried, 0);
  assert.equal((await feeder.round(never)).kind, "taken");
});

test("a sink that is sent back during a delivery is told all of it again", async (t) => {
  const { db } = await world(t);
  const all = ids(4);
  await accept(db, all);
  const sink = scriptedSink(2);
  const feeder = feederOn(db, sink);
  await fed(feeder, sink, 2);
  const held = gate();
  sink.answer(held.deliver);
  const { round } = await begun(feeder, held.entered);
  const start = startOf(await readEpoch(db));
  await moveFollower(db, "sink bus", start);
  held.open();
  assert.deepEqual(await round.then(({ kind, ...counts }) => counts), { carried: 0, refused: [] });
  assert.deepEqual(await position(db), start, "it stays where it was sent");
  sink.answer(async () => []);
  await fed(feeder, sink, 8);
  assert.deepEqual(sink.confirmed, [...accepted(all), ...accepted(all)]);
});

test("a paused sink is handed nothing, keeps its place, and goes on from there", async (t) => {
  const { db } = await world(t);
  const sink = scriptedSink();
  const feeder = feederOn(db, sink);
  await setConnectorPause(db, BUS, { reason: "a release", by: null });
  const all = ids(3);
  await accept(db, all);
  // Everybody else could read them.
  await follow(db, { limit: 10, least: 3 });
  assert.equal((await feeder.round(never)).kind, "paused");
  assert.deepEqual(sink.pages, []);
  await setConnectorPause(db, BUS, { reason: null, by: null });
  await fed(feeder, sink, 3);
  assert.deepEqual(sink.confirmed, accepted(all));
});

test("what a sink refuses for good is put aside and named, and the rest goes on", async (t) => {
  const { db } = await world(t);
  const all = ids(5);
  await accept(db, all);
  const sink = scriptedSink();
  sink.answer(async (facts) =>
    facts.flatMap((told) => (told.fact.notificationId === all[2] ? [{ told, error: "no queue takes it" }] : [])),
  );
  await fed(feederOn(db, sink), sink, 4);
  assert.deepEqual(
    sink.confirmed,
    accepted(all).filter((_, n) => n !== 2),
  );
  const [refusal, ...more] = await listRefusals(db, { limit: 10 });
  assert.deepEqual(more, []);
  const { kind, name, tenant, place, code, faults } = refusal ?? {};
  assert.deepEqual(
    { kind, name, tenant, place, code, faults },
    {
      ...BUS,
      tenant: "default",
      place: `${all[2]}:0 accepted`,
      code: "REFUSED_BY_SINK",
      faults: [{ path: "", message: "no queue takes it" }],
    },
  );
  const { carried, refused } = (await row(db)) ?? {};
  assert.deepEqual([carried, refused], [4, 1]);
});

test("types that a sink does not have are passed over, and it comes as far as the others", async (t) => {
  const { db } = await world(t);
  const all = ids(6);
  await accept(db, all);
  const sink = scriptedSink(2);
  const types: readonly FactType[] = ["sent"];
  const feeder = feederOn(db, sink, { types });
  await follow(db, { limit: 10, least: 6 });
  await until(async () => {
    await feeder.round(never);
    const at = await position(db);
    return at && comparePositions(at, await findFeedEnd(db)) === 0 ? true : undefined;
  }, LONG_MS);
  assert.equal(sink.pages.length, 0);
  assert.equal((await row(db))?.movedAt, null, "nothing was carried");
  const moves = async () =>
    (await db.query<{ xmin: string }>("select xmin::text from carillon.followers where name = 'sink bus'")).rows[0]
      ?.xmin;
  const before = await moves();
  assert.equal((await feeder.round(never)).kind, "idle");
  assert.equal(await moves(), before, "where nothing happened nothing is written");
  await attempt(db, all.slice(0, 3), "sent");
  await fed(feeder, sink, 3);
  assert.deepEqual(
    sink.pages.flat().map(({ fact }) => fact.type),
    ["sent", "sent", "sent"],
  );
});

test("while a sink hangs nothing is held up: others follow what happens meanwhile", async (t) => {
  const { db } = await world(t);
  await accept(db, ids(2));
  const sink = scriptedSink();
  const held = gate();
  sink.answer(held.deliver);
  const { round } = await begun(feederOn(db, sink), held.entered);
  const meanwhile = ids(3);
  await accept(db, meanwhile);
  const { facts } = await follow(db, { limit: 100, least: 5 });
  assert.deepEqual(
    facts.slice(-3).map(({ notificationId }) => notificationId),
    meanwhile,
  );
  const { rows } = await db.query(
    "select query from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()",
  );
  assert.deepEqual(rows, [], "no transaction is open");
  held.open();
  await round;
});

test("a sink that confirms nothing in time is tried anew, with the same page", async (t) => {
  const { db } = await world(t);
  const all = ids(2);
  await accept(db, all);
  const sink = scriptedSink();
  sink.answer(hang);
  const feeder = feederOn(db, sink, { deliverMs: 50 });
  await until(
    () =>
      feeder.round(never).then(
        () => undefined,
        (error: Error) => (/nothing was confirmed for 0.05 s/.test(error.message) ? true : assert.fail(error)),
      ),
    LONG_MS,
  );
  sink.answer(async () => []);
  await fed(feeder, sink, 2);
  assert.deepEqual(sink.confirmed, accepted(all));
});

test("a sink that is further behind than the feed is kept goes on with the oldest, and it is noted", async (t) => {
  const { db } = await world(t);
  const sink = scriptedSink();
  const missed: string[] = [];
  const feeder = feederOn(db, sink, { onMissed: (reason) => void missed.push(reason) });
  const lost = ids(2);
  await accept(db, lost.slice(0, 1));
  await fed(feeder, sink, 1);
  await accept(db, lost.slice(1));
  await follow(db, { limit: 10, least: 2 });
  const end = await findFeedEnd(db);
  await db.query("update carillon.epochs set forgotten_key = $1, forgotten_seq = $2, forgotten_at = carillon.now()", [
    end.key,
    end.seq - 1,
  ]);
  const kept = ids(2);
  await accept(db, kept);
  await fed(feeder, sink, 3);
  assert.deepEqual(missed, ["forgotten"]);
  assert.deepEqual(sink.confirmed, accepted([...lost.slice(0, 1), ...kept]));
  const { rows } = await db.query("select missed_at from carillon.followers where name = 'sink bus'");
  assert.ok(rows[0].missed_at);
});
