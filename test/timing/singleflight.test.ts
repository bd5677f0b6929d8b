// What is under way for a key is shared, and only that.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Provider } from "#channels/channel.ts";
import type { Ended, Reply } from "#domain/attempt.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { prepare } from "#steps/walk/prepare.ts";
import { createSingleflight } from "#timing/singleflight.ts";
import { claimedWith, worldWith } from "../support/walk.ts";

function later<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

test("a second asker finds what is under way, and nothing once it has ended, well or badly", async () => {
  const flights = createSingleflight<number>();
  assert.equal(flights.find("a"), undefined);
  const { promise, resolve } = later<number>();
  const kept = flights.keep("a", promise);
  assert.equal(flights.find("a"), promise);
  assert.equal(flights.find("b"), undefined);
  resolve(7);
  assert.equal(await kept, 7);
  assert.equal(flights.find("a"), undefined);
  await assert.rejects(flights.keep("a", Promise.reject(new Error("no"))));
  assert.equal(flights.find("a"), undefined);
});

test("a notification that comes back while its first send hangs is not sent twice by the same process", async () => {
  const { promise, resolve } = later<Reply>();
  let calls = 0;
  const provider: Provider = {
    name: "p",
    channels: ["console"],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    send: () => {
      calls++;
      return promise;
    },
  };
  const settled: Ended[] = [];
  const isSecond = ({ attempt }: Ended) => attempt.number === 2;
  const world = worldWith(settled, { providers: { route: () => [provider] }, monotonic: () => 0 }, isSecond);
  const lease = { meanBytes: 100, endsAt: 30_000, claimedAtMs: 0, claimedAt: 0, answeredAt: 0 };
  const claimed = [1, 2].map((number) => claimedWith({ number, lease: { ...lease, handle: number } }));
  const prepared = await prepare(claimed, world);
  const slot = {
    startedAt: 0,
    idempotencyKey: "x",
    timeoutMs: 100,
    signal: new AbortController().signal,
    free: () => undefined,
  };
  const both = Promise.all(prepared.map((one) => deliver(one, slot, world)));
  resolve({ kind: "accepted" });
  await both;
  assert.equal(calls, 1);
  assert.deepEqual(
    settled.map(({ attempt, settlement }) => [attempt.lease.handle, settlement.to]),
    [
      [1, "sent"],
      [2, "sent"],
    ],
  );
});
