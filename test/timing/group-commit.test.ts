// Group commit: who shares, who waits, who is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createGroupCommit, type GroupCommitOptions } from "#timing/group-commit.ts";

type Commit = { rows: number[]; done: (error?: Error) => void };

type Limits = Partial<Omit<GroupCommitOptions<number, string>, "commit">>;

function setUp(limits: Limits = {}) {
  const commits: Commit[] = [];
  const group = createGroupCommit<number, string>({
    abreast: 1,
    maxWaitingRows: 5000,
    maxWaitingBytes: 1e9,
    ...limits,
    commit: (rows) =>
      new Promise((resolve, reject) => {
        commits.push({ rows, done: (error) => (error ? reject(error) : resolve(rows.map((row) => `r${row}`))) });
      }),
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { commits, group, turn };
}

test("what arrives in one turn goes together, what arrives meanwhile shares the next commit", async () => {
  const { commits, group, turn } = setUp();
  const first = [group.submit([1], 1), group.submit([2], 1)];
  await turn();
  const second = [group.submit([3], 1), group.submit([4, 5], 1)];
  await turn();
  assert.deepEqual(
    commits.map(({ rows }) => rows),
    [[1, 2]],
  );
  commits[0]?.done();
  assert.deepEqual(await Promise.all(first), [["r1"], ["r2"]]);
  await turn();
  assert.deepEqual(commits[1]?.rows, [3, 4, 5]);
  commits[1]?.done();
  assert.deepEqual(await Promise.all(second), [["r3"], ["r4", "r5"]]);
});

test("nobody is answered before the commit with his own rows", async () => {
  const { commits, group, turn } = setUp({ abreast: 2 });
  const answered: string[] = [];
  void group.submit([1], 1)?.then(([row]) => answered.push(String(row)));
  await turn();
  void group.submit([2], 1)?.then(([row]) => answered.push(String(row)));
  await turn();
  assert.equal(commits.length, 2, "two abreast: two commits under way");
  commits[1]?.done();
  await turn();
  assert.deepEqual(answered, ["r2"]);
});

test("a commit that fails fails those in it and no others", async () => {
  const { commits, group, turn } = setUp();
  const failing = group.submit([1], 1);
  await turn();
  const next = group.submit([2], 1);
  commits[0]?.done(new Error("away"));
  await assert.rejects(failing ?? Promise.resolve(), /away/);
  await turn();
  commits[1]?.done();
  assert.deepEqual(await next, ["r2"]);
});

test("past the limit of rows or bytes a call is refused at once, and room comes back", async () => {
  const { commits, group, turn } = setUp({ maxWaitingRows: 3, maxWaitingBytes: 100 });
  assert.ok(group.submit([1, 2], 10));
  assert.equal(group.submit([3, 4], 10), undefined, "too many rows");
  assert.equal(group.submit([3], 91), undefined, "too many bytes");
  assert.ok(group.submit([3], 90));
  assert.equal(group.waitingRows(), 3);
  await turn();
  commits[0]?.done();
  await group.idle();
  assert.equal(group.waitingRows(), 0);
  assert.ok(group.submit([5], 100));
});

test("a commit takes at most 1000 rows, but a call is never torn apart", async () => {
  const { commits, group, turn } = setUp();
  const many = (n: number) => Array.from({ length: n }, (_, i) => i);
  for (const size of [600, 600, 300, 1500]) group.submit(many(size), 1);
  for (let n = 0; n < 3; n++) {
    await turn();
    commits.at(-1)?.done();
    await turn();
  }
  assert.deepEqual(
    commits.map(({ rows }) => rows.length),
    [600, 900, 1500],
  );
});

test("owners take turns, a call each, however much one of them has waiting", async () => {
  const { commits, group, turn } = setUp({ ownerOf: (row) => Math.floor(row / 10_000) });
  const some = (from: number, n: number) => Array.from({ length: n }, (_, i) => from + i);
  for (let n = 0; n < 5; n++) void group.submit(some(10_000 + n * 500, 500), 1);
  await turn();
  for (const owner of [2, 3]) void group.submit(some(owner * 10_000, 2), 1);
  commits[0]?.done();
  await turn();
  await turn();
  const owners = new Set(commits[1]?.rows.map((row) => Math.floor(row / 10_000)));
  assert.deepEqual([...owners].sort(), [1, 2, 3], "not after all that the first has waiting");
});

test("owners share the room: one who filled it takes none from the next, and has less while others wait", async () => {
  const { commits, group, turn } = setUp({ maxWaitingRows: 8, maxWaitingBytes: 80, ownerOf: (row) => row });
  for (let n = 0; n < 8; n++) assert.ok(group.submitOne(1, 10));
  assert.equal(group.submitOne(1, 10), undefined);
  assert.ok(group.submit([2, 2], 20), "the next gets in");
  assert.ok(group.submit([2, 2], 20), "up to half of the room");
  assert.equal(group.submitOne(2, 10), undefined);
  assert.equal(group.submitOne(1, 1), undefined);
  assert.ok(group.submitOne(3, 80), "whoever has nothing waiting gets in whatever it brings");
  assert.equal(group.submitOne(4, 81), undefined, "as long as it would fit at all");
  while (group.waitingRows() > 0) {
    await turn();
    commits.at(-1)?.done();
    await turn();
  }
  for (let n = 0; n < 8; n++) assert.ok(group.submitOne(2, 10));
});

test("while there is room for all, nobody is held to a share of it", () => {
  const { group } = setUp({ maxWaitingRows: 100, maxWaitingBytes: 1000, ownerOf: (row) => row });
  for (let owner = 0; owner < 50; owner++) assert.ok(group.submitOne(owner, 10));
  assert.ok(group.submit(Array(40).fill(7), 400), "as many as there is room for");
  assert.equal(group.submit(Array(40).fill(7), 1), undefined, "too many rows");
  assert.equal(group.submitOne(8, 101), undefined, "too many bytes");
  assert.ok(group.submitOne(8, 10));
});
