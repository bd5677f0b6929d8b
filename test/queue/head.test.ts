import assert from "node:assert/strict";
import { test } from "node:test";
import { createBacklog } from "#queue/postgres/head.ts";

const head = (seq: number, tenant = 1) => ({ rank: 2, heads: [{ tenant, pool: 7, seq }] });

test("head: after a full look the lane begins at what was found first in it, for 200 ms", () => {
  const backlog = createBacklog();
  backlog.found(backlog.heads(1_000), 1_000, head(50));
  assert.deepEqual(backlog.heads(1_199), head(50));
  assert.equal(backlog.heads(1_200), undefined);
});

test("head: looks from there move it on and do not prolong its time", () => {
  const backlog = createBacklog();
  backlog.found(backlog.heads(1_000), 1_000, head(50));
  backlog.found(backlog.heads(1_100), 1_100, head(90));
  assert.deepEqual(backlog.heads(1_199), head(90));
  assert.equal(backlog.heads(1_200), undefined);
});

test("head: a look that was not full is followed by one from the start", () => {
  const backlog = createBacklog();
  backlog.found(backlog.heads(1_000), 1_000, head(50));
  backlog.found(backlog.heads(1_010), 1_010, undefined);
  assert.equal(backlog.heads(1_020), undefined);
});

test("head: what another flow of the lane was looked at before stays known, and what a look left out", () => {
  const backlog = createBacklog();
  backlog.found(backlog.heads(1_000), 1_000, head(50, 2));
  backlog.found(backlog.heads(1_010), 1_010, head(60, 1));
  assert.deepEqual(backlog.heads(1_020), { rank: 2, heads: [...head(60, 1).heads, ...head(50, 2).heads] });
  backlog.found(backlog.heads(1_030), 1_030, undefined, [2]);
  assert.deepEqual(backlog.heads(1_040), head(50, 2));
});
