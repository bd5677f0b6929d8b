// Where the rows of a commit are in the record.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createIds } from "#domain/ids.ts";
import { stretchesOf } from "#domain/stretches.ts";

/** Made within a millisecond, however busy the machine. */
const idsAt = (ms = 1_000) => createIds(() => ms);
const at = (ms: number): string => idsAt(ms)();
const rows = (tenant: number, ids: readonly string[]) => ids.map((id) => ({ tenant, rank: 2, id }));

test("rows of a tenant that were made one after the other are next to each other, 32 of them at most", () => {
  const newId = idsAt();
  const ids = Array.from({ length: 70 }, newId);
  const stretches = stretchesOf(rows(1, ids));
  assert.deepEqual(
    stretches.map(({ t, a, b, m, n }) => [t, a, b, m, n]),
    [
      [1, ids[0], ids[31], 0, 31],
      [1, ids[32], ids[63], 32, 63],
      [1, ids[64], ids[69], 64, 69],
    ],
  );
});

test("of several tenants each has its own, however they are mixed", () => {
  const newId = idsAt();
  const mixed = Array.from({ length: 6 }, (_, n) => ({ tenant: 1 + (n % 2), rank: 2, id: newId() }));
  assert.deepEqual(
    stretchesOf(mixed).map(({ t, a, b, m, n }) => [t, a, b, m, n]),
    [
      [1, mixed[0]?.id, mixed[4]?.id, 0, 4],
      [2, mixed[1]?.id, mixed[5]?.id, 1, 5],
    ],
  );
});

test("what was made much earlier or later is by itself: between them there may be any number of others", () => {
  const ids = [at(1_000), at(1_001), at(9_000), at(1_002)];
  assert.deepEqual(
    stretchesOf(rows(1, ids)).map(({ m, n }) => [m, n]),
    [
      [0, 3],
      [2, 2],
    ],
  );
});

test("rows need not be in the order of their ids", () => {
  const newId = idsAt();
  const ids = Array.from({ length: 5 }, newId).reverse();
  const [{ a, b } = { a: "", b: "" }, ...others] = stretchesOf(rows(1, ids));
  assert.deepEqual([a, b, others], [ids[4], ids[0], []]);
});

test("lanes have their own", () => {
  const newId = idsAt();
  const mixed = Array.from({ length: 4 }, (_, n) => ({ tenant: 1, rank: n % 2, id: newId() }));
  assert.deepEqual(
    stretchesOf(mixed).map(({ p, a, b }) => [p, a, b]),
    [
      [0, mixed[0]?.id, mixed[2]?.id],
      [1, mixed[1]?.id, mixed[3]?.id],
    ],
  );
});

test("however rows are mixed, each is in one stretch", () => {
  const newId = idsAt();
  const ids = Array.from({ length: 40 }, newId);
  for (const order of [[...ids.slice(20), ...ids.slice(0, 20)], ids.toSorted(() => Math.random() - 0.5)]) {
    const found = stretchesOf(rows(1, order));
    for (const id of ids) assert.equal(found.filter(({ a, b }) => a <= id && id <= b).length, 1);
    for (const [n, id] of order.entries()) {
      const one = found.find(({ a, b }) => a <= id && id <= b);
      assert.ok(one && one.m <= n && n <= one.n);
    }
  }
});

test("what was made little by little is no longer than some milliseconds", () => {
  let ms = 1_000;
  const newId = createIds(() => ms++);
  assert.equal(stretchesOf(rows(1, Array.from({ length: 20 }, newId))).length, 3);
});
