// What a worker claims next, by what it has waiting.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asksFor, hasOpened, isForLanes } from "#roles/appetite.ts";
import { Share } from "#roles/share.ts";

const [URGENT, NORMAL, LOW] = [0, 2, 3] as const;
const ALL = [0, 1, 2, 3];
const options = { ranks: ALL, concurrency: 200, batchSize: 1000, perSecond: 0, freeBytes: 2 ** 24 };

function share(tenant: number, waiting: { [rank: number]: number }, weight = 1): Share {
  const one = new Share(tenant);
  one.weight = weight;
  for (const [rank, count] of Object.entries(waiting)) {
    one.waiting[Number(rank)] = count;
    one.inHand += count;
  }
  return one;
}

test("an empty hand takes a quarter of a second's work, at least the concurrency and at most a batch at a time", () => {
  const count = (perSecond: number) => asksFor([], { ...options, perSecond });
  assert.deepEqual(count(0), [{ ranks: ALL, notTenants: [], count: 200 }]);
  assert.deepEqual(count(2_000), [{ ranks: ALL, notTenants: [], count: 500 }]);
  assert.deepEqual(count(100_000), [{ ranks: ALL, notTenants: [], count: 1000 }]);
});

test("what is being sent takes no room", () => {
  const one = share(1, {});
  one.held = 200;
  assert.deepEqual(asksFor([one], options), [{ ranks: ALL, notTenants: [], count: 200 }]);
});

test("who has enough of a lane is left out of it and of those below, and nobody else is", () => {
  assert.deepEqual(asksFor([share(1, { [NORMAL]: 200 }), share(2, { [LOW]: 1 })], options), [
    { ranks: [0, 1], notTenants: [], count: 200 },
    { ranks: [2, 3], notTenants: [1], count: 99 },
  ]);
});

test("a hand full of lower work asks for as much of the higher as an empty one", () => {
  const full = Array.from({ length: 10 }, (_, n) => share(n, { [LOW]: 40 }));
  assert.deepEqual(asksFor(full, options), [{ ranks: [0, 1, 2], notTenants: [], count: 200 }]);
});

test("a hand full of urgent ones asks for nothing", () => {
  const full = Array.from({ length: 10 }, (_, n) => share(n, { [URGENT]: 40 }));
  assert.deepEqual(asksFor(full, options), []);
});

test("a little more is not asked for while there is enough", () => {
  const [first] = asksFor([share(1, { [NORMAL]: 140 })], options);
  assert.equal(first?.ranks.length, 4);
  assert.equal(asksFor([share(1, { [NORMAL]: 160 })], options)[1]?.notTenants.length, 1);
});

test("who weighs more may have more waiting", () => {
  const [first] = asksFor([share(1, { [NORMAL]: 200 }, 4)], options);
  assert.deepEqual(first, { ranks: ALL, notTenants: [], count: 75 });
});

test("who has more waiting than there is room, as the pace has fallen, is left out alone", () => {
  for (const stuck of [400, 4_000]) {
    const asks = asksFor([share(1, { [NORMAL]: stuck }), share(2, { [NORMAL]: 1 })], options);
    assert.deepEqual(asks[1], { ranks: [2, 3], notTenants: [1], count: 99 });
  }
  const asks = asksFor([share(1, { [NORMAL]: 500 }), share(2, { [NORMAL]: 700 }), share(3, {})], options);
  assert.deepEqual(asks[1], { ranks: [2, 3], notTenants: [1, 2], count: 66 });
});

test("room opens for a lane that was not asked and for a tenant that was left out, and is closed by neither", () => {
  const stuck = share(1, { [NORMAL]: 400 });
  const both = asksFor([stuck, share(2, { [NORMAL]: 200 })], options);
  const one = asksFor([stuck, share(2, { [NORMAL]: 10 })], options);
  const none = asksFor(
    Array.from({ length: 10 }, (_, n) => share(n, { [URGENT]: 40 })),
    options,
  );
  assert.deepEqual([hasOpened(both, one), hasOpened(one, both), hasOpened(one, one)], [true, false, false]);
  assert.deepEqual([hasOpened(none, one), hasOpened(one, none)], [true, false]);
  assert.deepEqual([isForLanes(one, ALL), isForLanes(none, ALL)], [true, false]);
});

test("whose requests fill the memory is left out of all but urgent and high, and who has few and small ones is not", () => {
  const heavy = share(1, {});
  heavy.held = 100;
  heavy.bytes = 2 ** 24;
  const light = share(2, { [NORMAL]: 1 });
  light.bytes = 2 ** 19;
  assert.equal(asksFor([heavy, light], { ...options, freeBytes: 2 ** 23 })[0]?.notTenants.length, 0);
  for (const freeBytes of [2 ** 22, 0, -(2 ** 22)]) {
    assert.deepEqual(asksFor([heavy, light], { ...options, freeBytes }), [
      { ranks: [0, 1], notTenants: [], count: 200 },
      { ranks: [2, 3], notTenants: [1], count: 199 },
    ]);
  }
});
