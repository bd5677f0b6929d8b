// Ready work goes from one engine to another and back while it is accepted and delivered, and each of it is delivered once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stretchesOf } from "#domain/stretches.ts";
import { currentPlace, findMove, type Move, moveOn } from "#queue/postgres/moves.ts";
import { LEASE_MS, type QueueHarness, SENT, settled } from "../conformance/queue-harness.ts";
import { openMovingQueue } from "../support/moving-queue.ts";

const { harness, skip, begin, abort, step, normal, empty, tendRedis } = await openMovingQueue();

const moveState = async () => (await findMove(harness.db))?.state;
const waiting = async (): Promise<{ ready: number; handed: number }> => {
  const { rows } = await harness.db.query(
    "select (select count(*)::int from carillon.ready) as ready, (select count(*)::int from carillon.handed) as handed",
  );
  return rows[0] as { ready: number; handed: number };
};
const claimIds = async (count = 1000) => (await harness.queue.claim(1, count, LEASE_MS)).map(({ id }) => id);

test("live-forward to Redis: what is new goes there at once, what was there is taken by workers, and then it is over", {
  skip,
}, async () => {
  const old = await normal(3);
  await begin("redis", "live-forward");
  const fresh = await normal(3);
  assert.deepEqual(await waiting(), { ready: 3, handed: 3 });
  await step();
  const move = (await findMove(harness.db)) as Move;
  assert.deepEqual([move.state, move.waiting, move.left], ["moving", 3, 3]);
  assert.deepEqual(await claimIds(4), [...old, fresh[0]], "first in, first out through both");
  await step();
  assert.equal(await moveState(), "done");
  assert.deepEqual(await claimIds(), fresh.slice(1));
});

test("live-forward to PostgreSQL needs no Redis any more: what waits there is taken over, in order", {
  skip,
}, async () => {
  await begin("redis", "live-forward");
  await step();
  const old = await normal(4);
  const [cancelled] = await normal(1);
  assert.ok(await harness.queue.cancel(harness.db, 1, cancelled as string));
  await begin("postgres", "live-forward");
  const fresh = await normal(2);
  await empty();
  await moveOn(harness.db, 1);
  assert.deepEqual(await waiting(), { ready: 6, handed: 0 });
  const move = (await findMove(harness.db)) as Move;
  assert.deepEqual([move.state, move.waiting, move.moved, move.left], ["done", 4, 4, 0]);
  assert.deepEqual(await claimIds(), [...old, ...fresh]);
});

test("drain-first: what is new waits in PostgreSQL until workers have emptied the source", { skip }, async () => {
  await normal(1);
  await begin("redis", "drain-first");
  const held = await normal(1);
  await step();
  assert.deepEqual([await moveState(), await currentPlace(harness.db)], ["moving", "postgres"]);
  assert.equal((await claimIds()).at(-1), held[0]);
  await step();
  assert.deepEqual([await moveState(), await currentPlace(harness.db)], ["done", "redis"]);

  await normal(2);
  await begin("postgres", "drain-first");
  await normal(1);
  await step();
  assert.equal(await moveState(), "moving");
  assert.deepEqual(await waiting(), { ready: 1, handed: 2 }, "nobody but a worker touches it");
  assert.equal((await claimIds()).length, 3);
  await step();
  assert.deepEqual([await moveState(), await currentPlace(harness.db)], ["done", "postgres"]);
});

test("an abort goes back with everything, whatever was new or moved", { skip }, async () => {
  const old = await normal(2);
  await begin("redis", "live-forward");
  const fresh = await normal(2);
  await abort();
  const later = await normal(1);
  assert.deepEqual([await moveState(), await currentPlace(harness.db)], ["aborting", "postgres"]);
  await step();
  assert.equal(await moveState(), "aborted");
  assert.deepEqual(await waiting(), { ready: 5, handed: 0 });
  assert.deepEqual(await claimIds(), [...old, ...fresh, ...later]);
});

test("the choice changes only when nobody is just handing over, and nobody hands over to where it was before", {
  skip,
}, async () => {
  await begin("redis", "live-forward");
  const slow = await harness.pool.connect();
  await slow.query("begin");
  const row = { i: "0190b0b0-0000-7000-8000-000000000001", t: 1, c: "console", p: 2, r: { channel: "console" } };
  await slow.query("select carillon.accept($1, false, null, false, '{redis}', $2)", [
    JSON.stringify([row]),
    JSON.stringify(stretchesOf([{ tenant: row.t, rank: row.p, id: row.i }])),
  ]);
  await harness.db.query("truncate carillon.engine_moves");
  const moving = begin("postgres", "live-forward");
  const isWaiting = "select from pg_locks where locktype = 'advisory' and not granted";
  while ((await harness.db.query(isWaiting)).rows.length === 0);
  await slow.query("commit");
  slow.release();
  await moving;
  assert.equal((await findMove(harness.db))?.waiting, 1, "it is counted among what waits at the source");
  await moveOn(harness.db, 10);
  assert.deepEqual([await moveState(), (await waiting()).ready], ["done", 1]);
});

test("through ten moves there and back, two who keep house, and aborts, each is delivered once", { skip }, async () => {
  const accepted: string[] = [];
  const delivered: string[] = [];
  let isOver = false;
  const accepting = (async () => {
    while (!isOver) accepted.push(...(await harness.enqueue(["high", "normal", "low", "normal"])));
  })();
  const worker = async (queue: QueueHarness["queue"], id: number) => {
    for (;;) {
      const isLast = isOver;
      const attempts = await queue.claim(id, 20, LEASE_MS);
      const ended = await queue.settle(attempts.map((attempt) => settled(attempt, SENT)));
      delivered.push(...attempts.filter((_, n) => ended[n]).map(({ id }) => id));
      if (isLast && attempts.length === 0 && accepted.length <= delivered.length) return;
    }
  };
  const keeping = async () => {
    while (!isOver) await step();
  };
  const keepers = [keeping(), keeping()];
  const workers = [worker(harness.queue, 1), worker(harness.another, 2)];
  for (let n = 0; n < 10; n++) {
    await begin(
      (await currentPlace(harness.db)) === "redis" ? "postgres" : "redis",
      n % 3 === 2 ? "drain-first" : "live-forward",
    );
    if (n % 5 === 4) await abort();
    const target = accepted.length + 20;
    while (accepted.length < target || (await findMove(harness.db))?.endedAt === null) {
      // A source that never is empty is never left: whoever drains first stops sending, or aborts.
      if ((await findMove(harness.db))?.state === "moving" && accepted.length > target + 200) await abort();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  isOver = true;
  await accepting;
  await Promise.all(keepers);
  // What the last of them left unoffered.
  await harness.db.query("update carillon.handoffs set handed_at = handed_at - interval '1 minute'");
  await tendRedis();
  await Promise.all(workers);
  assert.deepEqual(delivered.toSorted(), accepted.toSorted());
  assert.deepEqual(await waiting(), { ready: 0, handed: 0 });
});
