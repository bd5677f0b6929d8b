// How many are under way to one server, and when the others come.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createAbreast } from "#guards/abreast.ts";

const lease = { handle: 1, meanBytes: 0, endsAt: 1e9, claimedAtMs: 0, claimedAt: 0, answeredAt: 0 };
const turn = (seq: number, rank = 2) => ({ seq, rank, lease, expiresAtMs: undefined });

function setUp(most: number) {
  const clock = { now: 1_000 };
  const abreast = createAbreast(most, () => clock.now);
  /** All places are taken, and an answer comes every so often. */
  const answering = (everyMs: number, answers: number) => {
    while (abreast.enter(turn(0)));
    for (let n = 0; n < answers; n++) {
      clock.now += everyMs;
      abreast.leave();
      abreast.enter(turn(0));
    }
  };
  return { abreast, clock, answering };
}

test("no more are under way than allowed, and who waits gets the next place, in order", async () => {
  const { abreast } = setUp(2);
  assert.deepEqual(
    [1, 2, 3].map((seq) => abreast.enter(turn(seq))),
    [true, true, false],
  );
  const order: number[] = [];
  const waits = [1, 2, 3].map((seq) => abreast.wait(turn(seq)).then((got) => got === true && order.push(seq)));
  for (let n = 0; n < 3; n++) abreast.leave();
  await Promise.all(waits);
  assert.deepEqual([order, abreast.underWay()], [[1, 2, 3], 2]);
  abreast.leave();
  abreast.leave();
  assert.equal(abreast.underWay(), 0);
});

test("where answers come slowly few wait here; the others come back one by one, at the pace of the answers", async () => {
  const { abreast, answering } = setUp(4);
  answering(500, 100);
  const waits = Array.from({ length: 20 }, (_, n) => abreast.wait(turn(n)));
  const isWaiting = 5;
  const away = await Promise.all(waits.slice(isWaiting));
  assert.deepEqual(
    away.map((ms) => Math.round(Number(ms) / 100)),
    away.map((_, n) => 30 + 5 * n),
  );
  for (let n = 0; n < isWaiting; n++) abreast.leave();
  assert.deepEqual(await Promise.all(waits.slice(0, isWaiting)), Array(isWaiting).fill(true));
});

test("who comes later goes behind those who were sent away, unless it is more urgent or one of them", async () => {
  const { abreast, answering } = setUp(4);
  answering(500, 100);
  const waiting = Array.from({ length: 5 }, (_, n) => abreast.wait(turn(n)));
  const sent = await abreast.wait(turn(10));
  assert.equal(Math.round(Number(sent) / 100), 30);
  for (let n = 0; n < 5; n++) abreast.leave();
  await Promise.all(waiting);
  assert.ok(Number(await abreast.wait(turn(11))) > Number(sent));
  const others = [abreast.wait(turn(12, 0)), abreast.wait(turn(9))];
  abreast.leave();
  abreast.leave();
  assert.deepEqual(await Promise.all(others), [true, true]);
});

test("a server that fell silent is not waited for, however quick it was", async () => {
  const { abreast, answering, clock } = setUp(4);
  answering(1, 100);
  clock.now += 20_000;
  const first = abreast.wait(turn(1));
  assert.ok(Number(await abreast.wait(turn(2))) >= 5_000);
  abreast.leave();
  assert.equal(await first, true);
});

test("who was sent away in a moment's silence holds up nobody who comes once there are answers again", async () => {
  const { abreast, answering, clock } = setUp(4);
  answering(1, 100);
  const waiting = Array.from({ length: 20 }, (_, n) => abreast.wait(turn(n)));
  clock.now += 1_000;
  const away = await Promise.all(Array.from({ length: 10 }, (_, n) => abreast.wait(turn(20 + n))));
  assert.ok(
    away.every((ms) => Number(ms) > 2_000),
    `${away}`,
  );
  const behind = await abreast.wait(turn(30));
  assert.ok(Number(behind) > Number(away.at(-1)), "still silent");
  for (let n = 0; n < 20; n++) abreast.leave();
  await Promise.all(waiting);
  answering(1, 100);
  const next = abreast.wait(turn(31));
  abreast.leave();
  assert.equal(await next, true);
});
