// Hundreds of transactions that commit in another order than they began in: long ones, some that are taken back, some with savepoints, some whose
// connection is killed. Those who follow beside them see each fact once, in order per notification, and in the end what the record has.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { type Fact, factId, startOf } from "#domain/fact.ts";
import { readEpoch, readFeed } from "#record/feed.ts";
import { accept, attempt, feedDatabase, makeId, namesOf } from "../support/feed.ts";
import { until } from "../support/until.ts";

const WRITERS = 10;
const TRANSACTIONS = 40;
const SEED = Number(process.env.CARILLON_FEED_SEED ?? 1);

/** Numbers between 0 and 1, the same for a seed. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

type World = { url: string; ids: string[]; chance: () => number };

async function connect({ url }: World): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  return client;
}

const pause = (db: pg.Client, ms: number) => db.query("select pg_sleep($1)", [ms / 1000]);

/** Whoever writes about a notification holds it, as everywhere in the product. */
async function write(db: pg.Client, { ids, chance }: World): Promise<void> {
  const some = [0, 1, 2].map(() => ids[Math.floor(chance() * ids.length)] as string);
  const held = [...new Set(some)].sort();
  await db.query("select from carillon.notifications where id = any ($1) order by id for update", [held]);
  await attempt(db, held);
}

async function transact(db: pg.Client, world: World): Promise<void> {
  const { chance, ids } = world;
  await db.query("begin");
  // Its id is drawn long before it writes, or just then.
  if (chance() < 0.7) await db.query("select pg_current_xact_id()");
  if (chance() < 0.5) await pause(db, chance() * (chance() < 0.05 ? 800 : 20));
  const fresh = chance() < 0.5 ? [makeId(), makeId()] : [];
  if (fresh.length > 0) await accept(db, fresh);
  const kind = chance();
  if (kind < 0.3) {
    await db.query("savepoint s");
    await write(db, world);
    await db.query(kind < 0.15 ? "rollback to s" : "release s");
  }
  await write(db, world);
  if (kind > 0.97) await db.query("select pg_terminate_backend(pg_backend_pid())");
  if (chance() < 0.3) await pause(db, chance() * 10);
  const isKept = chance() < 0.85;
  await db.query(isKept ? "commit" : "rollback");
  if (isKept) ids.push(...fresh);
}

/** What a transaction loses for being in the way of another, or for being killed, is lost as a whole. */
async function writer(world: World): Promise<void> {
  let db = await connect(world);
  for (let n = 0; n < TRANSACTIONS; n++) {
    try {
      await transact(db, world);
    } catch {
      await db.end().catch(() => undefined);
      db = await connect(world);
    }
  }
  await db.end();
}

/** Reads beside them until everything was written, and then up to what the record has. */
async function follower(db: pg.Pool, limit: number, isDone: () => Promise<number | undefined>): Promise<Fact[]> {
  const facts: Fact[] = [];
  let after = startOf(await readEpoch(db));
  await until(async () => {
    const expected = await isDone();
    for (let isAtEnd = false; !isAtEnd; ) {
      const page = await readFeed(db, { after, limit });
      if (page.kind === "reset") throw new Error(`reset: ${page.reason}`);
      facts.push(...page.facts);
      after = page.next;
      isAtEnd = page.isAtEnd;
    }
    return expected !== undefined && facts.length >= expected ? true : undefined;
  }, 120_000);
  return facts;
}

test(`who follows sees each fact once, in order per notification, and all the record has (seed ${SEED})`, async (t) => {
  const { db, url } = await feedDatabase(t);
  const world: World = { url, ids: Array.from({ length: 20 }, makeId), chance: chances(SEED) };
  await accept(db, world.ids);
  let isWritten = false;
  const recorded = async () =>
    (
      await db.query<{ id: string }>("select notification_id || ':' || seq as id from carillon.history order by seq")
    ).rows.map(({ id }) => id);
  const isDone = async () => (isWritten ? (await recorded()).length : undefined);
  const following = [1, 7, 500].map((limit) => follower(db, limit, isDone));
  await Promise.all(Array.from({ length: WRITERS }, () => writer(world)));
  isWritten = true;

  const expected = (await recorded()).sort();
  assert.ok(expected.length > WRITERS * TRANSACTIONS, `${expected.length} facts`);
  const seen = await Promise.all(following);
  for (const facts of seen) {
    assert.deepEqual(facts.map(factId).sort(), expected, "each once");
    const last = new Map<string, number>();
    for (const { notificationId, number } of facts) {
      assert.ok(number > (last.get(notificationId) ?? -1), `${notificationId} in order`);
      last.set(notificationId, number);
    }
    assert.deepEqual(namesOf(facts), namesOf(seen[0] ?? []), "all see one order");
  }
  t.diagnostic(`${expected.length} facts of ${world.ids.length} notifications`);
});
