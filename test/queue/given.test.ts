// What an engine is told, and what it gave, in as few entries as there can be.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Handoff } from "#domain/handoff.ts";
import { countOf, entriesOf, singly } from "#queue/engine.ts";
import { bitsOf, leftOf } from "#queue/postgres/given.ts";

const HANDOFF: Handoff = {
  ...{ number: 8, engine: "redis", rank: 2, size: 7 },
  seqs: [10, 11, 12, 13, 15, 16, 17],
  tenants: [1, 1, 2, 1, 1, 1, 1],
  pools: [3, 3, 3, 3, 3, 4, 4],
};
const LANE = { handoff: 8, rank: 2 };

test("numbers that follow each other, of one flow, are one entry", () => {
  const entries = entriesOf(HANDOFF);
  assert.deepEqual(entries, [
    { ...LANE, place: 0, seq: 10, count: 2, tenant: 1, pool: 3 },
    { ...LANE, place: 2, seq: 12, count: 1, tenant: 2, pool: 3 },
    { ...LANE, place: 3, seq: 13, count: 1, tenant: 1, pool: 3 },
    { ...LANE, place: 4, seq: 15, count: 1, tenant: 1, pool: 3 },
    { ...LANE, place: 5, seq: 16, count: 2, tenant: 1, pool: 4 },
  ]);
  assert.deepEqual([countOf(entries), singly(entries).map(({ seq }) => seq)], [7, HANDOFF.seqs]);
});

test("a column that is the same for all is told once, and so are numbers that follow each other", () => {
  const [seqs, tenants, pools] = [[10], [1], [3]];
  assert.deepEqual(entriesOf({ ...HANDOFF, seqs, tenants, pools }), [
    { ...LANE, place: 0, seq: 10, count: 7, tenant: 1, pool: 3 },
  ]);
  const apart = entriesOf({ ...HANDOFF, size: 3, seqs, tenants: [1, 1, 2], pools });
  assert.deepEqual(
    apart.map(({ seq, count, tenant }) => [seq, count, tenant]),
    [
      [10, 2, 1],
      [12, 1, 2],
    ],
  );
});

test("what has left a handoff is in none of its entries", () => {
  const entries = entriesOf({
    ...HANDOFF,
    size: 3,
    seqs: [10, 12, 13],
    tenants: [1, 1, 1],
    pools: [3, 3, 3],
    places: [0, 2, 3],
  });
  assert.deepEqual(
    entries.map(({ place, count }) => [place, count]),
    [
      [0, 1],
      [2, 2],
    ],
  );
});

test("bits are asked for by handoff, and what nobody can have is not", () => {
  const entries = entriesOf(HANDOFF).filter(({ place }) => place !== 3);
  const other = { ...LANE, handoff: 16, place: 1, seq: 1, count: 1, tenant: 1, pool: 3 };
  const absurd = [{ count: 2 ** 40 }, { place: -1 }, { count: 0 }, { handoff: Number.NaN }];
  const all = [...entries, other, ...absurd.map((more) => ({ ...other, ...more }))];
  assert.deepEqual(bitsOf(all), [
    [8, 16],
    ["1110111", "01"],
  ]);
});

test("of an entry of which some is left, that is left; one that is left whole is the same", () => {
  const [two, one, ...rest] = entriesOf(HANDOFF);
  assert.ok(two && one);
  const left = leftOf(
    [two, one, ...rest],
    [
      [8, 1],
      [8, 2],
      [8, 6],
      [24, 0],
    ],
  );
  assert.deepEqual(
    left.map(({ place, seq, count }) => [place, seq, count]),
    [
      [1, 11, 1],
      [2, 12, 1],
      [6, 17, 1],
    ],
  );
  assert.equal(left[1], one);
  assert.deepEqual(leftOf([{ ...one, count: 2 ** 40 }], [[8, 2]]), []);
  const many = { ...LANE, place: 0, seq: 1, count: 6, tenant: 1, pool: 3 };
  const parts = leftOf(
    [many],
    [0, 1, 3, 5].map((place) => [8, place] as const),
  );
  assert.deepEqual(
    parts.map(({ place, count }) => [place, count]),
    [
      [0, 2],
      [3, 1],
      [5, 1],
    ],
  );
});
