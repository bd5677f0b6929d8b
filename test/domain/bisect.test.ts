// Bisecting: one that is refused is refused alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bisect } from "#domain/bisect.ts";

const away = new Error("away");

function setUp(bad: readonly number[]) {
  const acts: number[][] = [];
  const kept: number[] = [];
  const run = (rows: readonly number[]) =>
    bisect<number, string>(rows, {
      async act(some) {
        acts.push([...some]);
        if (some.includes(-1)) throw away;
        const found = some.find((row) => bad.includes(row));
        if (found !== undefined) throw new Error(`will not have ${found}`);
        kept.push(...some);
        return some.map((row) => `kept ${row}`);
      },
      isOutage: (error) => error === away,
      refuse: (error, row) => `${row}: ${error instanceof Error ? error.message : error}`,
    });
  return { acts, kept, run };
}

test("those that nobody refuses go together", async () => {
  const { acts, run } = setUp([]);
  assert.deepEqual(await run([1, 2, 3]), ["kept 1", "kept 2", "kept 3"]);
  assert.deepEqual(acts, [[1, 2, 3]]);
});

test("those that are refused are refused alone, and every outcome stands in its place", async () => {
  const { kept, run } = setUp([2, 5]);
  assert.deepEqual(await run([1, 2, 3, 4, 5]), [
    "kept 1",
    "2: will not have 2",
    "kept 3",
    "kept 4",
    "5: will not have 5",
  ]);
  assert.deepEqual(kept, [1, 3, 4]);
});

test("one among a thousand is found with few acts", async () => {
  const { acts, kept, run } = setUp([700]);
  await run(Array.from({ length: 1000 }, (_, n) => n));
  assert.equal(kept.length, 999);
  assert.ok(acts.length <= 21, `${acts.length} acts`);
});

test("an outage is nobody's fault: it is not searched for", async () => {
  const { acts, run } = setUp([1]);
  await assert.rejects(run([-1, 2, 3, 4]), away);
  assert.equal(acts.length, 1);
});
