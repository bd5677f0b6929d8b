// The Redis engine of limits passes the suite of all engines, forgets what is idle, and says when it is away.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rate } from "#domain/gcra.ts";
import type { Limit } from "#guards/limit/limit.ts";
import { createRedisLimit } from "#guards/limit/redis.ts";
import { openRedis, type Redis, script } from "#wire/redis.ts";
import { limitConformance } from "../../conformance/limit.ts";
import { NO_REDIS, type RedisServer, startRedis, startSentinel, tell } from "../../support/servers/redis.ts";
import { until } from "../../support/until.ts";

const started = await startRedis();
const skip = started ? false : NO_REDIS;
const server = started as RedisServer;
const opened: Redis[] = [];
after(async () => {
  for (const redis of opened) await redis.close();
  await started?.stop();
});

async function open(url = server.url, prefix = "carillon"): Promise<Redis> {
  const redis = await openRedis({ url, prefix }, "a test", { away: () => undefined, back: () => undefined });
  opened.push(redis);
  await untilReady(redis);
  return redis;
}

/** It says how it stands before it runs scripts. */
const untilReady = (redis: Redis) => until(() => redis.run(READY, [redis.key("ready")], []).catch(() => undefined));
const READY = script("return 'yes'");

const one = { seq: 1, rank: 2 };
const take = (limit: Limit, key: string, rates: readonly Rate[], seq = 1, n = 1) =>
  limit.take([{ key, rates, n }], { seq, rank: 2 }, 0);
const HOURLY: Rate[] = [{ per: "hour", most: 2, burst: 2 }];

if (!skip) {
  limitConformance("Redis", async () => ({
    limit: createRedisLimit(await open()),
    another: createRedisLimit(await open()),
    stop: async () => undefined,
  }));
}

test("a thousand who ask at once each get an instant of their own, in the order they asked", { skip }, async () => {
  const limit = createRedisLimit(await open());
  const rates: Rate[] = [
    { per: "second", most: 10 },
    { per: "minute", most: 300 },
    { per: "hour", most: 1000 },
  ];
  const taken = await Promise.all(Array.from({ length: 1000 }, (_, seq) => take(limit, "account:many", rates, seq)));
  const waits = taken.flatMap((each) => (each.isGranted ? [] : [each.waitMs]));
  assert.ok(waits.length >= 990);
  const inOrder = waits.toSorted((a, b) => a - b);
  assert.deepEqual(waits, inOrder);
  assert.ok(new Set(waits.map((wait) => Math.round(wait))).size > 900);
  const last = inOrder.at(-1) ?? 0;
  assert.ok(last > 3_000_000 && last < 3_700_000, `the last comes back after ${last} ms`);
});

test("keys of which nothing is left to say go by themselves, others are kept", { skip }, async () => {
  const redis = await open();
  const limit = createRedisLimit(redis);
  await take(limit, "recipient:x", [{ per: "second", most: 1000 }]);
  await take(limit, "recipient:y", HOURLY);
  await until(async () => ((await limit.look(["recipient:x"])).length === 0 ? true : undefined));
  const left = await limit.look(["recipient:x", "recipient:y"]);
  assert.deepEqual(
    left.map(({ key }) => key),
    ["recipient:y"],
  );
});

test("those who share a Redis under other prefixes do not share limits", { skip }, async () => {
  const [mine, yours] = [createRedisLimit(await open()), createRedisLimit(await open(server.url, "others"))];
  for (let n = 0; n < 2; n++) assert.ok((await take(mine, "account:shared", HOURLY, n)).isGranted);
  assert.ok(!(await take(mine, "account:shared", HOURLY, 3)).isGranted);
  assert.ok((await take(yours, "account:shared", HOURLY)).isGranted);
});

test("scripts that a server has forgotten are told again", { skip }, async () => {
  const limit = createRedisLimit(await open());
  assert.ok((await take(limit, "account:forgotten", HOURLY)).isGranted);
  await tell(server.port, "SCRIPT FLUSH");
  assert.ok((await take(limit, "account:forgotten", HOURLY, 2)).isGranted);
  assert.ok(!(await take(limit, "account:forgotten", HOURLY, 3)).isGranted);
});

test("while it is away nobody is granted anything, and at once; what it keeps holds when it is back", {
  skip,
}, async () => {
  const kept = (await startRedis({ isKept: true, password: "s3cret/?#" })) as RedisServer;
  const said: string[] = [];
  const redis = await openRedis({ url: kept.url, prefix: "carillon" }, "a test", {
    away: () => said.push("away"),
    back: () => said.push("back"),
  });
  try {
    const limit = createRedisLimit(redis);
    await untilReady(redis);
    assert.ok((await take(limit, "account:away", HOURLY)).isGranted);
    await kept.kill();
    const startedAt = performance.now();
    await assert.rejects(take(limit, "account:away", HOURLY, 2));
    await assert.rejects(redis.standing());
    assert.ok(performance.now() - startedAt < 20_000);
    await kept.restart();
    await untilReady(redis);
    assert.ok((await take(limit, "account:away", HOURLY, 3)).isGranted);
    assert.ok(!(await take(limit, "account:away", HOURLY, 4)).isGranted, "the one before it was killed counts");
    assert.ok(said.includes("away") && said.at(-1) === "back", said.join());
  } finally {
    await redis.close();
    await kept.stop();
  }
});

test("in a cluster several keys are taken from all or not at all", { skip }, async () => {
  const cluster = (await startRedis({ isCluster: true })) as RedisServer;
  try {
    const limit = createRedisLimit(await open(cluster.url));
    const both = (other: string, seq: number) =>
      limit.take(
        [
          { key: "account:wide", rates: [{ per: "hour", most: 3, burst: 3 }], n: 1 },
          { key: other, rates: HOURLY, n: 1 },
        ],
        { ...one, seq },
        0,
      );
    const granted = [];
    for (let seq = 1; seq <= 4; seq++) granted.push((await both("recipient:a", seq)).isGranted);
    for (let seq = 5; seq <= 7; seq++) granted.push((await both("recipient:b", seq)).isGranted);
    assert.deepEqual(granted, [true, true, false, false, true, false, false]);
  } finally {
    await cluster.stop();
  }
});

test("a sentinel leads to the master, and to the next one", { skip }, async () => {
  const first = (await startRedis()) as RedisServer;
  const second = (await startRedis({ more: { replicaof: `127.0.0.1 ${first.port}` } })) as RedisServer;
  const sentinel = (await startSentinel(first.port)) as RedisServer;
  try {
    const limit = createRedisLimit(await open(sentinel.url));
    assert.ok((await take(limit, "account:led", HOURLY)).isGranted);
    // The replica has it, and the sentinel has seen the replica.
    await until(async () => ((await tell(first.port, "WAIT 1 1000")).startsWith(":1") ? true : undefined));
    await until(async () =>
      (await tell(sentinel.port, "SENTINEL replicas bells")).startsWith("*1") ? true : undefined,
    );
    await first.kill();
    const taken = await until(() => take(limit, "account:led", HOURLY, 2).catch(() => sleep(100, undefined)));
    assert.ok(taken.isGranted);
    assert.ok(!(await take(limit, "account:led", HOURLY, 3)).isGranted, "the one that the first granted counts");
  } finally {
    await sentinel.stop();
    await second.stop();
    await first.stop();
  }
});

test("one that may drop keys is named", { skip }, async () => {
  const small = (await startRedis({ more: { maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" } })) as RedisServer;
  try {
    const { version, evicts } = await (await open(small.url)).standing();
    assert.match(version, /^(Redis|Valkey) \d/);
    assert.equal(evicts, "allkeys-lru");
    assert.equal((await (await open()).standing()).evicts, undefined);
  } finally {
    await small.stop();
  }
});
