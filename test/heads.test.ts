import assert from "node:assert/strict";
import { test } from "node:test";
import { createHeads } from "../src/queue/heads.ts";

const START = [0, 0, 0, 0];

test("heads: after a full look each lane begins at what was found first in it, for 200 ms", () => {
  const heads = createHeads(4);
  heads.found(heads.at(1_000), 1_000, { 2: 50, 3: 7 });
  assert.deepEqual(heads.at(1_199), [50, 50, 50, 7]);
  assert.deepEqual(heads.at(1_200), START);
});

test("heads: a lane that was not reached keeps its beginning, an empty one before it begins behind what is there", () => {
  const heads = createHeads(4);
  heads.found(heads.at(1_000), 1_000, { 1: 50 });
  assert.deepEqual(heads.at(1_001), [50, 50, 0, 0]);
});

test("heads: looks from there move them on and never back, and do not prolong their time", () => {
  const heads = createHeads(4);
  heads.found(heads.at(1_000), 1_000, { 2: 50 });
  heads.found(heads.at(1_100), 1_100, { 2: 90 });
  assert.deepEqual(heads.at(1_150), [90, 90, 90, 0]);
  heads.found(heads.at(1_150), 1_150, {});
  assert.deepEqual(heads.at(1_199), [90, 90, 90, 0]);
  assert.deepEqual(heads.at(1_200), START);
});

test("heads: a look that did not find enough is followed by one from the start", () => {
  const heads = createHeads(4);
  heads.found(heads.at(1_000), 1_000, { 2: 50 });
  heads.found(heads.at(1_010), 1_010, undefined);
  assert.deepEqual(heads.at(1_020), START);
});
