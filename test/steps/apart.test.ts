// Whoever wants a key that an open transaction holds waits apart from all others.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "#domain/problems.ts";
import { createApart, HELD, type Kept } from "#steps/walk/apart.ts";
import { createGroupCommit } from "#timing/group-commit.ts";

type Row = { name: string; key?: string };

/** `held` are the keys that somebody holds; commits apart wait until they are let go on with. */
function harness(held: Set<string>) {
  const commits: { shared: string[][]; apart: string[][] } = { shared: [], apart: [] };
  let goOn = () => {};
  const committing = (seen: string[][], wait: () => Promise<void>) =>
    createGroupCommit<Row, Kept<string>>({
      abreast: 1,
      maxWaitingRows: 10,
      maxWaitingBytes: 1_000,
      commit: async (rows) => {
        seen.push(rows.map(({ name }) => name));
        await wait();
        return rows.map(({ name, key }) => (key !== undefined && held.has(key) ? HELD : `${name} stored`));
      },
    });
  const shared = committing(commits.shared, async () => {});
  const apart = committing(commits.apart, () => new Promise((resolve) => (goOn = resolve)));
  const keep = createApart<Row, string>({ shared, apart, bytesOf: () => 1, keyOf: ({ key }) => key });
  const codes = async (rows: Row[]) =>
    (await keep(rows))?.map((outcome) => (outcome instanceof Problem ? outcome.code : outcome));
  const untilApart = async (count: number) => {
    while (commits.apart.length < count) await new Promise(setImmediate);
  };
  return { codes, commits, untilApart, goOn: () => goOn() };
}

test("others are answered while a held key is waited for, and its request is told once the wait is over", async () => {
  const { codes, untilApart, goOn } = harness(new Set(["k"]));
  const waiting = codes([{ name: "first" }, { name: "held", key: "k" }, { name: "last", key: "free" }]);
  await untilApart(1);
  assert.deepEqual(await codes([{ name: "other", key: "o" }]), ["other stored"]);
  goOn();
  assert.deepEqual(await waiting, ["first stored", "IDEMPOTENCY_IN_PROGRESS", "last stored"]);
});

test("a key that is known to be held comes into no shared commit again, until it is free", async () => {
  const held = new Set(["k"]);
  const { codes, commits, untilApart, goOn } = harness(held);
  const row = (name: string) => ({ name, key: "k" });
  const first = codes([row("1")]);
  await untilApart(1);
  const second = codes([row("2"), { name: "free" }]);
  goOn();
  assert.deepEqual(await first, ["IDEMPOTENCY_IN_PROGRESS"]);
  await untilApart(2);
  held.delete("k");
  goOn();
  assert.deepEqual(await second, ["2 stored", "free stored"]);
  assert.deepEqual(commits.shared, [["1"], ["free"]]);
  assert.deepEqual(await codes([row("3")]), ["3 stored"]);
  assert.deepEqual(commits.shared.at(-1), ["3"]);
});

test("when too many wait for keys already, a request is told at once", async () => {
  const { codes, untilApart, goOn } = harness(new Set(["k"]));
  const waiting = codes(Array.from({ length: 10 }, (_, n) => ({ name: `${n}`, key: "k" })));
  await untilApart(1);
  assert.deepEqual(await codes([{ name: "one more", key: "k" }]), ["IDEMPOTENCY_IN_PROGRESS"]);
  goOn();
  await waiting;
});
