// Those who wait, owner by owner.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createLines } from "#timing/lines.ts";

const anybody = () => true;

test("lines: owners take turns, however many wait in one line", () => {
  const lines = createLines<string>();
  for (const job of ["a0", "a1", "a2"]) lines.join(1, job);
  lines.join(2, "b0");
  assert.deepEqual(
    Array.from({ length: 5 }, () => lines.next(anybody)),
    ["a0", "b0", "a1", "a2", undefined],
  );
});

test("lines: who may not is passed over and keeps its place", () => {
  const lines = createLines<string>();
  for (const [owner, job] of [
    [1, "a"],
    [2, "b"],
    [3, "c"],
  ] as const)
    lines.join(owner, job);
  assert.equal(
    lines.next((owner) => owner === 3),
    "c",
  );
  assert.equal(lines.next(anybody), "a");
  assert.equal(
    lines.next((_owner, job) => job !== "b"),
    undefined,
  );
  assert.equal(lines.next(anybody), "b");
});

test("lines: whoever leaves is not come to, and an empty line is none", () => {
  const lines = createLines<string>();
  lines.join(1, "a0");
  lines.join(1, "a1");
  lines.join(2, "b0");
  lines.leave(1, "a0");
  lines.leave(2, "b0");
  lines.leave(2, "b0");
  assert.deepEqual([lines.lengthOf(1), lines.lengthOf(2), lines.owners()], [1, 0, 1]);
  assert.deepEqual([lines.clear(), lines.owners(), lines.next(anybody)], [["a1"], 0, undefined]);
});
