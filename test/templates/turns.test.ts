// Whose turn it is, and what is kept for whom.

import assert from "node:assert/strict";
import { test } from "node:test";
import { rankOf } from "#domain/priority.ts";
import { createKept } from "#templates/kept.ts";
import { createTurns } from "#templates/turns.ts";

const { urgent: URGENT, normal: NORMAL, low: LOW } = rankOf;

test("tenants go round in a circle, however many one of them has waiting", () => {
  const turns = createTurns<string>({ maxWaiting: 100, mostInHand: 9 });
  for (let n = 0; n < 5; n++) turns.add(1, NORMAL, `a${n}`);
  turns.add(2, NORMAL, "b0");
  turns.add(3, NORMAL, "c0");
  turns.add(2, NORMAL, "b1");
  assert.deepEqual(
    Array.from({ length: 9 }, () => turns.next()),
    ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4", undefined],
  );
});

test("what is urgent goes first, one's own and others', and in a lane tenants go round", () => {
  const turns = createTurns<string>({ maxWaiting: 100, mostInHand: 9 });
  for (let n = 0; n < 3; n++) turns.add(1, LOW, `low a${n}`);
  turns.add(2, LOW, "low b");
  turns.add(1, URGENT, "urgent a0");
  turns.add(1, URGENT, "urgent a1");
  turns.add(3, URGENT, "urgent c");
  assert.deepEqual(
    Array.from({ length: 8 }, () => turns.next()),
    ["urgent a0", "urgent c", "urgent a1", "low a0", "low b", "low a1", "low a2", undefined],
  );
});

test("a flood of what is urgent leaves the last hand to others, whatever their lane", () => {
  const turns = createTurns<string>({ maxWaiting: 100, mostInHand: 2 });
  for (let n = 0; n < 5; n++) turns.add(1, URGENT, `a${n}`);
  turns.add(2, LOW, "b");
  assert.deepEqual([turns.next(), turns.next(), turns.next(), turns.next()], ["a0", "a1", "b", undefined]);
});

test("a tenant has so many in hand and no more, until one is over", () => {
  const turns = createTurns<string>({ maxWaiting: 100, mostInHand: 2 });
  for (const job of ["a0", "a1", "a2"]) turns.add(1, NORMAL, job);
  assert.deepEqual([turns.next(), turns.next(), turns.next()], ["a0", "a1", undefined]);
  turns.add(2, NORMAL, "b0");
  assert.equal(turns.next(), "b0");
  turns.over(1);
  assert.equal(turns.next(), "a2");
});

test("room to wait is shared by those who wait: one who filled it takes none from the next", () => {
  const turns = createTurns<number>({ maxWaiting: 10, mostInHand: 1 });
  const added = (tenant: number) =>
    Array.from({ length: 20 }, (_, n) => turns.add(tenant, NORMAL, n)).filter(Boolean).length;
  assert.deepEqual([added(1), added(2), added(3)], [10, 5, 4]);
  assert.equal(turns.add(1, NORMAL, 0), false);
  assert.equal(turns.clear().length, 19);
  assert.equal(turns.next(), undefined);
});

test("while there is room for all to wait, nobody is held to a share of it", () => {
  const turns = createTurns<number>({ maxWaiting: 20, mostInHand: 1 });
  for (let tenant = 1; tenant <= 10; tenant++) assert.ok(turns.add(tenant, NORMAL, 0));
  const added = Array.from({ length: 20 }, (_, n) => turns.add(1, NORMAL, n)).filter(Boolean).length;
  assert.equal(added, 10);
});

test("what is kept is bounded, and goes from whom has most of it", () => {
  const kept = createKept();
  const size = 100_000;
  kept.use("mine", 1, size);
  const forgotten = Array.from({ length: 100 }, (_, n) => kept.use(`theirs-${n}`, 2, size).forget).flat();
  assert.equal(forgotten.length, 100 + 1 - Math.floor((2 * 1024 * 1024) / size));
  assert.equal(forgotten[0], "theirs-0");
  assert.deepEqual(kept.use("mine", 1, size), { isKnown: true, isKept: true, forget: [] });
  assert.deepEqual(kept.use("huge", 2, 1_000_000), { isKnown: false, isKept: false, forget: [] });
});

test("of what is kept the one used longest ago goes first", () => {
  const kept = createKept();
  for (let n = 0; n < 500; n++) kept.use(String(n), 1, 10);
  kept.use("0", 1, 10);
  assert.deepEqual(kept.use("new", 1, 10), { isKnown: false, isKept: true, forget: ["1"] });
  kept.forget("new");
  assert.deepEqual(kept.use("newer", 1, 10).forget, []);
});
