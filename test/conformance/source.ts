// What every source must do. A test file calls this with a way to make topics, to write to them, and to read them.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch, Keeping, Kept, RunningSource } from "#sources/source.ts";
import { until } from "../support/until.ts";

export type TopicUnderTest = {
  topic: string;
  write(partition: number, values: readonly string[]): Promise<void>;
  open(keeping: Keeping): Promise<RunningSource>;
};
export type SourcesUnderTest = { create(partitions: number): Promise<TopicUnderTest> };

const LONG_MS = 120_000;

/** Keeps in memory, by the same rule as the database does. */
function memory(fails: (batch: Batch) => boolean = () => false) {
  const kept = new Map<number, string[]>();
  const next = new Map<number, number>();
  const tried: Batch[] = [];
  const keep = (batch: Batch): Kept => {
    tried.push(batch);
    if (fails(batch)) throw new Error("the database is away");
    const { partition, from, messages } = batch;
    const at = next.get(partition) ?? from;
    if (at !== from) return { kind: "elsewhere", next: at };
    next.set(partition, batch.next);
    kept.set(partition, [...(kept.get(partition) ?? []), ...messages.map(({ value }) => String(value))]);
    return { kind: "moved", refused: [] };
  };
  const failures: unknown[] = [];
  const keeping: Keeping = {
    offsets: async () => new Map(next),
    read: async (batch) => async () => keep(batch),
    untold: async () => [],
    told: async () => {},
    missed: (what) => assert.fail(what),
    failed: (error) => error === undefined || failures.push(error),
  };
  const untilKept = (partition: number, count: number) =>
    until(async () => ((kept.get(partition)?.length ?? 0) >= count ? kept.get(partition) : undefined), LONG_MS);
  return { keeping, kept, next, tried, failures, untilKept };
}

const values = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => String(from + n));

export function sourceConformance(name: string, under: SourcesUnderTest): void {
  test(`${name}: each partition is read in order, from its first message on, and nothing waits in the end`, async () => {
    const { write, open } = await under.create(2);
    await write(0, values(0, 50));
    const { keeping, untilKept } = memory();
    const source = await open(keeping);
    try {
      await write(1, values(0, 30));
      assert.deepEqual(await untilKept(0, 50), values(0, 50));
      assert.deepEqual(await untilKept(1, 30), values(0, 30));
      await until(async () => (source.lag() === 0 ? true : undefined), LONG_MS);
    } finally {
      await source.stop();
    }
  });

  test(`${name}: what could not be kept is tried again, the same, and what comes after it waits; others go on`, async () => {
    const { write, open } = await under.create(2);
    let isAway = true;
    const { keeping, tried, kept, failures, untilKept } = memory(({ partition }) => isAway && partition === 0);
    await write(0, values(0, 5));
    const source = await open(keeping);
    try {
      await until(
        async () => (tried.filter(({ partition }) => partition === 0).length > 1 ? true : undefined),
        LONG_MS,
      );
      await write(0, values(5, 10));
      await write(1, values(0, 5));
      assert.deepEqual(await untilKept(1, 5), values(0, 5));
      assert.ok(failures.length > 0, "it is told to people");
      assert.equal(kept.has(0), false);
      assert.ok(tried.every(({ partition, from }) => partition === 1 || from === 0));
      isAway = false;
      assert.deepEqual(await untilKept(0, 10), values(0, 10));
    } finally {
      await source.stop();
    }
  });

  test(`${name}: what somebody else has kept meanwhile is passed over`, async () => {
    const { write, open } = await under.create(1);
    const { keeping, next, untilKept } = memory();
    await write(0, values(0, 10));
    const source = await open(keeping);
    try {
      await untilKept(0, 10);
      next.set(0, 15);
      await write(0, values(10, 20));
      assert.deepEqual(await untilKept(0, 15), [...values(0, 10), ...values(15, 20)]);
    } finally {
      await source.stop();
    }
  });

  test(`${name}: two that read the same keep each message once`, async () => {
    const { write, open } = await under.create(2);
    const { keeping, untilKept } = memory();
    const both = [await open(keeping), await open(keeping)];
    try {
      for (let at = 0; at < 200; at += 20) for (const partition of [0, 1]) await write(partition, values(at, at + 20));
      for (const partition of [0, 1]) assert.deepEqual(await untilKept(partition, 200), values(0, 200));
    } finally {
      for (const source of both) await source.stop();
    }
  });

  test(`${name}: after a stop nothing is kept, and the next one goes on from there`, async () => {
    const { write, open } = await under.create(1);
    const { keeping, kept, untilKept } = memory();
    await write(0, values(0, 10));
    const first = await open(keeping);
    await untilKept(0, 10);
    await first.stop();
    await write(0, values(10, 20));
    assert.deepEqual(kept.get(0), values(0, 10));
    const second = await open(keeping);
    try {
      assert.deepEqual(await untilKept(0, 20), values(0, 20));
    } finally {
      await second.stop();
    }
  });
}
