import assert from "node:assert/strict";
import { test } from "node:test";
import { createBacklog } from "#queue/postgres/head.ts";

const head = (seq: number) => ({ rank: 2, seq });

test("head: after a full look the lane begins at what was found first in it, for 200 ms", () => {
  const backlog = createBacklog();
  backlog.found(backlog.head(1_000), 1_000, head(50));
  assert.deepEqual(backlog.head(1_199), head(50));
  assert.equal(backlog.head(1_200), undefined);
});

test("head: looks from there move it on and do not prolong its time", () => {
  const backlog = createBacklog();
  backlog.found(backlog.head(1_000), 1_000, head(50));
  backlog.found(backlog.head(1_100), 1_100, head(90));
  assert.deepEqual(backlog.head(1_199), head(90));
  assert.equal(backlog.head(1_200), undefined);
});

test("head: a look that was not full is followed by one from the start", () => {
  const backlog = createBacklog();
  backlog.found(backlog.head(1_000), 1_000, head(50));
  backlog.found(backlog.head(1_010), 1_010, undefined);
  assert.equal(backlog.head(1_020), undefined);
});
