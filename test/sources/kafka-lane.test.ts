// A partition's messages are kept in their order, whatever fails on the way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KafkaLane } from "#sources/kafka-lane.ts";
import type { Read } from "#sources/kafka-records.ts";
import type { Keep, Keeping } from "#sources/source.ts";
import { until } from "../support/until.ts";

const message = (offset: number): Read => ({
  offset,
  headers: new Map(),
  headerBytes: 0,
  value: Buffer.from("{}"),
  raw: [],
  key: null,
  bytes: 2,
});
const messages = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => message(from + n));

test("where keeping fails, what comes after is read anew as well: numbers are given in the order of the messages", async () => {
  let given = 0;
  let fails = 1;
  const kept: { from: number; number: number }[] = [];
  const keeping = {
    read: async ({ from }): Promise<Keep> => {
      const number = ++given;
      return async () => {
        await new Promise(setImmediate);
        if (fails-- > 0) throw new Error("the database is away");
        kept.push({ from, number });
        return { kind: "moved", refused: [] };
      };
    },
    failed: () => {},
  } satisfies Pick<Keeping, "read" | "failed">;
  const lane = new KafkaLane({
    topic: "requests",
    partition: 0,
    from: 0,
    keeping: keeping as unknown as Keeping,
    onRefused: () => {},
    onMoved: () => {},
  });
  lane.add(messages(0, 10_000), 10_000);
  await until(async () => (lane.kept === 10_000 ? true : undefined));
  await lane.close();
  assert.deepEqual(
    kept.map(({ from }) => from),
    [0, 4_000, 8_000],
  );
  const numbers = kept.map(({ number }) => number);
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
});
