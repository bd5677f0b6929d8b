// What Redis and those who use it can do wrong loses nothing and doubles nothing.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { countOf, type Engine, type Entry, singly, type Take } from "#queue/engine.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { LEASE_MS, type QueueHarness } from "../conformance/queue-harness.ts";
import { setUpQueue, tend } from "../support/queue-on-postgres.ts";
import { openRedisEngine } from "../support/redis-engine.ts";
import { NO_REDIS, type RedisServer, startRedis, tell } from "../support/servers/redis.ts";
import { until } from "../support/until.ts";

const started = await startRedis();
const skip = started ? false : NO_REDIS;
const server = started as RedisServer;
type Opened = Awaited<ReturnType<typeof openRedisEngine>>;
let opened: Opened;
let harness: QueueHarness;
/** Whether a commit's offer comes to Redis, or its process dies before. */
let isOffered = true;

before(async () => {
  if (skip) return;
  opened = await openRedisEngine(server.url);
  harness = await setUpQueue({
    engines: [withLostOffers(opened.engine), opened.engine],
    empty: async () => void (await tell(server.port, "FLUSHALL")),
  });
});
beforeEach(() => {
  isOffered = true;
  return harness?.clear();
});
after(async () => {
  await harness?.stop();
  await opened?.close();
  await started?.stop();
});

const withLostOffers = (engine: Engine): Engine => ({
  ...engine,
  offer: async (handoffs) => (isOffered ? engine.offer(handoffs) : []),
});

const normal = (n: number) => harness.enqueue(Array(n).fill("normal"));
const claimIds = async (count = 1000) => (await harness.queue.claim(1, count, LEASE_MS)).map(({ id }) => id);
const tendNow = () => tend(opened.engine, harness.db);
/** What whoever has just committed offers himself is left to him for a moment. */
const age = () => harness.db.query("update carillon.handoffs set handed_at = handed_at - interval '1 minute'");

test("what was committed and not offered, as its process died, is offered by the keeper", { skip }, async () => {
  const first = await normal(3);
  isOffered = false;
  const lost = await normal(2);
  isOffered = true;
  const last = await normal(1);
  await age();
  assert.equal(await tendNow(), 2);
  assert.equal(await tendNow(), 0, "once");
  assert.deepEqual(await claimIds(), [...first, ...lost, ...last]);
});

test("a Redis that was emptied gives nothing until all that is open was offered again, in order; and nothing twice", {
  skip,
}, async () => {
  const ids = await normal(10);
  const claimed = await claimIds(4);
  await tell(server.port, "FLUSHALL");
  const later = await normal(2);
  assert.deepEqual(await claimIds(), [], "the later ones would go before those that it forgot");
  assert.equal(await tendNow(), 6);
  assert.deepEqual([...claimed, ...(await claimIds())], [...ids, ...later]);
  assert.deepEqual(await claimIds(), []);
});

test("a Redis that is emptied just while it is looked after is not opened by that", { skip }, async () => {
  const ids = await normal(4);
  await tell(server.port, "FLUSHALL");
  const tending = opened.engine.tend(harness.db, 1)[Symbol.asyncIterator]();
  await tending.next();
  await tell(server.port, "FLUSHALL");
  for (let step = await tending.next(); !step.done; ) step = await tending.next();
  const later = await normal(1);
  assert.deepEqual(await claimIds(), [], "what it forgot would be overtaken");
  await tendNow();
  assert.deepEqual(await claimIds(), [...ids, ...later]);
});

test("a Redis that comes back with what it knew some time ago loses nothing and doubles nothing", {
  skip,
}, async (t) => {
  const old = (await startRedis()) as RedisServer;
  const mine = await openRedisEngine(old.url);
  const own = await setUpQueue({ engines: [mine.engine, mine.engine], empty: async () => undefined });
  t.after(async () => {
    await own.stop();
    await mine.close();
    await old.stop();
  });
  const claim = async () => (await own.queue.claim(1, 5, LEASE_MS)).map(({ id }) => id);
  const ids = await own.enqueue(Array(10).fill("normal"));
  await tell(old.port, "SAVE");
  const claimed = await claim();
  const later = await own.enqueue(Array(3).fill("normal"));
  await old.kill();
  await old.restart();
  await mine.ready();
  assert.deepEqual(await claim(), [], "it is not known yet what it forgot");
  await tend(mine.engine, own.db);
  for (let got = claimed; got.length > 0; claimed.push(...got)) got = await claim();
  assert.deepEqual(claimed, [...ids, ...later]);
});

test("a replica that is promoted without the last of what was written is opened only when that was offered", {
  skip,
}, async (t) => {
  const replica = (await startRedis()) as RedisServer;
  t.after(replica.stop);
  const ids = await normal(4);
  await tell(replica.port, `REPLICAOF 127.0.0.1 ${server.port}`);
  await until(async () =>
    (await tell(replica.port, "INFO replication")).includes("master_link_status:up") ? true : undefined,
  );
  await until(async () => ((await tell(replica.port, "EXISTS {q}:queue:open")).startsWith(":1") ? true : undefined));
  await tell(replica.port, "REPLICAOF NO ONE");
  const later = await normal(3);
  const promoted = await openRedisEngine(replica.url);
  t.after(promoted.close);
  const queue = createPostgresQueue(harness.db, () => performance.now(), { engines: [promoted.engine] });
  assert.deepEqual(await queue.claim(1, 100, LEASE_MS), []);
  await tend(promoted.engine, harness.db);
  const claimed = await queue.claim(1, 100, LEASE_MS);
  assert.deepEqual(
    claimed.map(({ id }) => id),
    [...ids, ...later],
  );
});

test("what was taken by somebody who died before claiming it is given to others, once its time is over", {
  skip,
}, async (t) => {
  const hasty = await openRedisEngine(server.url, { keepMs: 1 });
  t.after(hasty.close);
  const ids = await normal(5);
  assert.equal(countOf((await takeAll(hasty.engine)).entries), 5);
  assert.deepEqual(await claimIds(), []);
  await until(async () => {
    await tendNow();
    const got = await claimIds();
    if (got.length > 0) assert.deepEqual(got, ids);
    return got.length > 0 ? true : undefined;
  });
});

test("of what a commit accepted, what follows each other is one entry; of one that is not taken whole the rest stays, in order", {
  skip,
}, async () => {
  const ids = await normal(50);
  const take = await takeAll(opened.engine);
  assert.deepEqual([take.entries.length, countOf(take.entries)], [1, 50]);
  take.done(take.entries, []);
  const got: string[] = [];
  for (const count of [1, 7, 30]) got.push(...(await claimIds(count)));
  await until(async () => {
    got.push(...(await claimIds()));
    return got.length === 50 ? true : undefined;
  });
  assert.deepEqual(got, ids);
});

const takeAll = (engine: Engine): Promise<Take> =>
  engine.take({
    ...{ count: 100, ranks: [0, 1, 2, 3], channels: null, tenants: null, notTenants: [], regions: null },
    next: () => ({ tenant: 0, spent: 0 }),
    weights: new Map(),
  });

test("an engine that gives the same again and again, to everybody, and what never was, has each claimed once", {
  skip,
}, async () => {
  const ids = await normal(50);
  const entries = singly((await takeAll(opened.engine)).entries);
  const ghosts: Entry[] = entries.slice(0, 3).flatMap((entry) => [
    { ...entry, handoff: entry.handoff + 800 },
    { ...entry, place: 5_000 },
    { ...entry, place: 2 ** 40 },
    { ...entry, count: 2 ** 40 },
    { ...entry, count: 0 },
    { ...entry, handoff: Number.NaN },
  ]);
  // And some of it as somebody else's, of another lane.
  const mistaken = entries.map((entry, n) => (n % 5 === 0 ? { ...entry, tenant: 77, rank: 0 } : entry));
  const liar: Engine = {
    ...opened.engine,
    take: async () => ({ entries: [...ghosts, ...mistaken], hasMore: false, done: () => undefined }),
  };
  const queues = [1, 2, 3, 4].map(() => createPostgresQueue(harness.db, () => performance.now(), { engines: [liar] }));
  const claimed = await Promise.all(
    queues.map(async (queue, worker) => {
      const mine: string[] = [];
      for (let n = 0; n < 8; n++) mine.push(...(await queue.claim(worker, 7, LEASE_MS)).map(({ id }) => id));
      return mine;
    }),
  );
  assert.deepEqual(claimed.flat().toSorted(), ids.toSorted());
  const { rows } = await harness.db.query("select from carillon.handoffs");
  assert.equal(rows.length, 0, "what is over is gone");
});

test("what is cancelled while somebody has taken its entry is never claimed", { skip }, async () => {
  const [first, second] = (await normal(2)) as [string, string];
  const take = await takeAll(opened.engine);
  assert.ok(await harness.queue.cancel(harness.db, 1, first));
  take.done(take.entries, []);
  await until(async () => {
    const got = await claimIds();
    if (got.length > 0) assert.deepEqual(got, [second]);
    return got.length > 0 ? true : undefined;
  });
  assert.equal((await harness.look(first)).status, "cancelled");
});

test("while Redis is away what is accepted is kept, and what PostgreSQL has is claimed; all the rest when it is back, in order", {
  skip,
}, async (t) => {
  const other = (await startRedis({ isKept: true })) as RedisServer;
  const mine = await openRedisEngine(other.url);
  const failures: unknown[] = [];
  const own = await setUpQueue({ engines: [mine.engine, mine.engine], empty: async () => undefined });
  t.after(async () => {
    await own.stop();
    await mine.close();
    await other.stop();
  });
  const queue = createPostgresQueue(own.db, () => performance.now(), {
    engines: [mine.engine],
    onEngineFailed: (_, error) => failures.push(error),
  });
  const before = await own.enqueue(Array(3).fill("normal"));
  await other.kill();
  const meanwhile = await own.enqueue(Array(3).fill("normal")).catch(() => []);
  const { rows } = await own.db.query<{ id: string }>("select id from carillon.notifications order by seq");
  assert.equal(rows.length, 6, "acceptance goes on");
  const [home] = rows.slice(-1);
  await own.db.query(
    "select carillon.queue_bring_home(array(select number from carillon.handoffs order by number desc limit 1))",
  );
  assert.ok((await queue.claim(1, 1, LEASE_MS)).length === 1, "what is in PostgreSQL goes on");
  assert.ok(failures.length > 0, "and it is told");
  await other.restart();
  await mine.ready();
  await own.db.query("update carillon.handoffs set handed_at = handed_at - interval '1 minute'");
  await tend(mine.engine, own.db);
  const rest = await queue.claim(1, 100, LEASE_MS);
  const all = rows.map(({ id }) => id);
  assert.ok(home && meanwhile.every((id) => all.includes(id)) && before.every((id) => all.includes(id)));
  assert.equal(rest.length, 5);
  assert.deepEqual(
    rest.map(({ id }) => id),
    all.filter((id) => rest.some((one) => one.id === id)),
  );
});

test("who fills Redis fills it up to a bound: the rest waits in PostgreSQL, others are not kept out, and order holds", {
  skip,
}, async (t) => {
  const small = await openRedisEngine(server.url, { most: { ofFlow: 1, ofAll: 3 } });
  const own = await setUpQueue({
    engines: [small.engine, small.engine],
    empty: async () => void (await tell(server.port, "FLUSHALL")),
  });
  t.after(async () => {
    await own.stop();
    await small.close();
  });
  await own.clear();
  const other = await own.tenant("other");
  const flood: string[] = [];
  for (let n = 0; n < 5; n++) flood.push(...(await own.enqueue(["normal", "normal", "normal"])));
  const theirs = await own.enqueue(["normal"], {}, other);
  const kept = await own.db.query("select from carillon.handed");
  assert.equal(
    kept.rows.length,
    4,
    "the first commit of the flood, which has no place for another, and one of the others",
  );
  assert.equal((await own.queue.depth(own.db)).depth.normal, 16);
  const claimed = await own.queue.claim(1, 100, LEASE_MS);
  assert.deepEqual(
    claimed.filter(({ tenant }) => tenant === 1).map(({ id }) => id),
    flood,
  );
  assert.ok(claimed.findIndex(({ id }) => id === theirs[0]) <= 1, "and they have their turn");
});

test("while Redis is frozen what waits in PostgreSQL is claimed, and what waits there afterwards, in order", {
  skip,
}, async () => {
  const there = await normal(3);
  await harness.db.query("select carillon.queue_choose('postgres')");
  const here = await normal(2);
  const engines = [opened.engine];
  const hasty = createPostgresQueue(harness.db, () => performance.now(), { engines, knownMs: 0, patienceMs: 50 });
  const claimHastily = async () => (await hasty.claim(1, 1000, LEASE_MS)).map(({ id }) => id);
  process.kill(server.pid(), "SIGSTOP");
  try {
    assert.deepEqual(await claimHastily(), here);
    assert.deepEqual(await claimHastily(), []);
  } finally {
    process.kill(server.pid(), "SIGCONT");
  }
  const got: string[] = [];
  await until(async () => {
    got.push(...(await claimHastily()));
    return got.length > 2 ? true : undefined;
  });
  assert.deepEqual(got, there);
});

test("what waits in Redis overtakes nothing that a claim left in PostgreSQL, as others came short of their share", {
  skip,
}, async () => {
  const [short, many] = [await harness.tenant("short"), await harness.tenant("many")];
  const inPostgres = async (is: boolean) => {
    await harness.db.query("select carillon.queue_choose($1)", [is ? "postgres" : "redis"]);
  };
  await inPostgres(true);
  const [first] = await harness.enqueue(["high"], {}, short);
  const here = await harness.enqueue(Array(10).fill("high"), {}, many);
  await inPostgres(false);
  const there = await harness.enqueue(Array(10).fill("high"), {}, many);
  const lower = await harness.enqueue(Array(10).fill("normal"), {}, short);
  const got: string[] = [];
  while (got.length < 31) {
    const some = await claimIds(4);
    assert.ok(some.length > 0);
    got.push(...some);
  }
  assert.deepEqual(
    got.filter((id) => id !== first),
    [...here, ...there, ...lower],
  );
});

test("what waits in Redis does not take the place of a share that others have locked in PostgreSQL", {
  skip,
}, async () => {
  await harness.db.query("select carillon.queue_choose('postgres')");
  const here = await harness.enqueue(["high", "high", "high", "high", "normal"]);
  await harness.db.query("select carillon.queue_choose('redis')");
  const there = await harness.enqueue(["high", "normal", "low"]);
  const other = await harness.pool.connect();
  try {
    await other.query("begin");
    await other.query("select from carillon.ready where priority = 1 order by seq limit 2 for update");
    assert.deepEqual(await claimIds(2), []);
    await other.query("commit");
  } finally {
    other.release();
  }
  assert.deepEqual(await claimIds(), [...here.slice(0, 4), there[0], here[4], there[1], there[2]]);
});

test("nobody has more turns by what waits in Redis than one whose own waits in PostgreSQL", { skip }, async () => {
  const [here, there] = [await harness.tenant("here"), await harness.tenant("there")];
  await harness.db.query("select carillon.queue_choose('postgres')");
  const mine = await harness.enqueue(Array(20).fill("normal"), {}, here);
  const [few] = await harness.enqueue(["normal"], {}, there);
  await harness.enqueue(["normal"], {}, await harness.tenant("few"));
  await harness.db.query("select carillon.queue_choose('redis')");
  await harness.enqueue(Array(20).fill("normal"), {}, there);
  const some = await harness.queue.claim(1, 9, LEASE_MS);
  const turnsOf = (tenant: number) => some.filter((one) => one.tenant === tenant).length;
  assert.ok(turnsOf(there) <= turnsOf(here) + 1, `${turnsOf(there)} turns against ${turnsOf(here)}`);
  assert.deepEqual(
    some.map(({ id }) => id).filter((id) => mine.includes(id)),
    mine.slice(0, turnsOf(here)),
  );
  assert.ok(some.some(({ id }) => id === few));
});

test("of however many tenants something waits in PostgreSQL, what Redis has of them comes after it", {
  skip,
}, async () => {
  const tenants: number[] = [];
  for (let n = 0; n < 220; n++) tenants.push(await harness.tenant(`crowd-${n}`));
  await harness.db.query("select carillon.queue_choose('postgres')");
  const here = new Set<string>();
  for (const tenant of tenants) for (const id of await harness.enqueue(["normal"], {}, tenant)) here.add(id);
  await harness.db.query("select carillon.queue_choose('redis')");
  for (const tenant of tenants) await harness.enqueue(["normal"], {}, tenant);
  // What has learned nothing of tenants yet has turns of two in a claim of four hundred, and looks at two hundred tenants.
  const queue = createPostgresQueue(harness.db, () => performance.now(), {
    engines: [opened.engine],
    knownMs: 0,
    patienceMs: 60_000,
    onEngineFailed: (_, error) => assert.fail(String(error)),
  });
  const begun = new Set<number>();
  let claimed = 0;
  while (claimed < 2 * tenants.length) {
    const some = await queue.claim(1, 400, LEASE_MS);
    assert.ok(some.length > 0);
    claimed += some.length;
    for (const { id, tenant } of some) {
      if (here.has(id)) begun.add(tenant);
      else assert.ok(begun.has(tenant), `${tenant}'s later one came first`);
    }
  }
});
