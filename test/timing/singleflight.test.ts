// What is under way for a key is shared, and only that.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Provider } from "#channels/channel.ts";
import type { Attempt, Reply } from "#domain/attempt.ts";
import { DEFAULT_RETRY } from "#domain/retry.ts";
import { NO_GUARD } from "#guards/guard.ts";
import type { Settled } from "#queue/queue.ts";
import { deliver, type Ended, type World } from "#steps/walk/deliver.ts";
import { createSingleflight } from "#timing/singleflight.ts";

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
  const settled: Settled[] = [];
  const world: World = {
    route: () => [provider],
    render: async (_tenant, request) => request,
    push: { settledDevices: async () => new Map(), deactivate: async () => undefined },
    guard: NO_GUARD,
    flights: createSingleflight<Ended>(),
    notePostponed: () => undefined,
    settle: async (one) => {
      settled.push(one);
      return one.attempt.lease.handle === 2;
    },
    monotonic: () => 0,
    random: () => 0,
    retry: DEFAULT_RETRY,
    leaseMarginMs: 100,
    tell: () => undefined,
  };
  const attempt = (token: number): Attempt => ({
    seq: 1,
    lease: { handle: token, meanBytes: 0, endsAt: 1_000, claimedAtMs: 0, claimedAt: 0 },
    handle: 0,
    tenant: 1,
    id: "x",
    rank: 2,
    number: token,
    request: { channel: "console", content: { body: "b" } },
    sinceMs: 0,
    expiresAtMs: undefined,
  });
  const slot = {
    startedAt: 0,
    idempotencyKey: "x",
    timeoutMs: 100,
    signal: new AbortController().signal,
    free: () => undefined,
  };
  const both = Promise.all([deliver(attempt(1), slot, world), deliver(attempt(2), slot, world)]);
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
