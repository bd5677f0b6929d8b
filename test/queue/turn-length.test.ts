// How long turns are: as long as the worker is busy with one for half a millisecond, and no longer than what tenants have.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurnLength } from "#queue/postgres/turn-length.ts";

const ALL = [0, 1, 2, 3];
const HIGH = [0, 1];
const NORMAL = 2;

/** Claims of a thousand that come back full, one each so many milliseconds. */
function backlog(everyMs: number, claims: number) {
  const turns = createTurnLength();
  let at = 0;
  const claim = (hadEach?: number) => {
    at += everyMs;
    turns.claimed({ ranks: ALL, count: 1_000, end: NORMAL, isFull: true, hadEach, at });
  };
  for (let n = 0; n < claims; n++) claim();
  return { turns, claim };
}

test("a turn is half a millisecond's work: long where sends are fast, one each where they are slow", () => {
  assert.equal(backlog(20, 20).turns.of(ALL, 1_000), 25);
  assert.equal(backlog(50, 20).turns.of(ALL, 1_000), 10);
  assert.equal(backlog(250, 20).turns.of(ALL, 1_000), 2);
  assert.equal(backlog(5_000, 20).turns.of(ALL, 1_000), 1);
});

test("a claim is of twenty tenants at least, if there are so many", () => {
  const { turns } = backlog(10, 20);
  assert.deepEqual(
    [1, 39, 40, 400, 1_000].map((count) => turns.of(ALL, count)),
    [1, 1, 2, 20, 50],
  );
});

test("where tenants have less, turns are about as long as what they have; once they have more, turns grow again", () => {
  const { turns, claim } = backlog(10, 20);
  claim(3.2);
  assert.equal(turns.of(ALL, 1_000), 3.2);
  for (let n = 0; n < 19; n++) claim();
  assert.equal(turns.of(ALL, 1_000), 3.2, "not at once: to have asked too few costs another look");
  for (let n = 0; n < 10; n++) claim();
  assert.equal(turns.of(ALL, 1_000), 50);
});

test("a pause says nothing of the pace", () => {
  const { turns } = backlog(10, 20);
  turns.claimed({ ranks: ALL, count: 1_000, end: undefined, isFull: false, hadEach: undefined, at: 300 });
  turns.claimed({ ranks: ALL, count: 1_000, end: NORMAL, isFull: true, hadEach: undefined, at: 90_000 });
  assert.equal(turns.of(ALL, 1_000), 50);
});

test("a few urgent ones beside a backlog change nothing of it", () => {
  const { turns } = backlog(250, 20);
  turns.claimed({ ranks: HIGH, count: 100, end: 0, isFull: false, hadEach: 1, at: 5_001 });
  turns.claimed({ ranks: HIGH, count: 100, end: undefined, isFull: false, hadEach: undefined, at: 5_002 });
  assert.equal(turns.of(ALL, 1_000), 2);
  assert.equal(turns.of(HIGH, 100), 1, "they may be of a hundred tenants");
});

test("what a lane's tenants have is remembered while another has its claims", () => {
  const { turns, claim } = backlog(10, 20);
  claim(3);
  const of = (end: number, isFull: boolean, at: number) =>
    turns.claimed({ ranks: ALL, count: 1_000, end, isFull, hadEach: undefined, at });
  of(3, true, 220);
  assert.equal(turns.of(ALL, 1_000), 50);
  of(NORMAL, true, 230);
  assert.equal(turns.of(ALL, 1_000), 3);
});
