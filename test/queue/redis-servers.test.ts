// The same queue on whatever Redis there is: a cluster, one behind a sentinel, with TLS, and for a user who may do no more than the queue needs.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { openRedis } from "#wire/redis.ts";
import { LEASE_MS } from "../conformance/queue-harness.ts";
import { CERTIFICATE, PRIVATE_KEY } from "../support/certificate.ts";
import { setUpQueue, tend } from "../support/queue-on-postgres.ts";
import { openRedisEngine } from "../support/redis-engine.ts";
import {
  NO_REDIS,
  type RedisOptions,
  type RedisServer,
  startRedis,
  startSentinel,
  tell,
} from "../support/servers/redis.ts";
import { freePort, serverHome } from "../support/servers/server.ts";
import { until } from "../support/until.ts";

const probe = await startRedis();
const skip = probe ? false : NO_REDIS;
await probe?.stop();

async function start(t: TestContext, options: RedisOptions = {}): Promise<RedisServer> {
  const server = (await startRedis(options)) as RedisServer;
  t.after(server.stop);
  return server;
}

/** Of two processes. */
async function open(t: TestContext, url: string) {
  const [one, another] = [await openRedisEngine(url), await openRedisEngine(url)];
  const harness = await setUpQueue({ engines: [one.engine, another.engine], empty: async () => undefined });
  t.after(async () => {
    await harness.stop();
    await one.close();
    await another.close();
  });
  const claim = async () => (await harness.queue.claim(1, 100, LEASE_MS)).map(({ id }) => id);
  return { ...harness, claim, engine: one.engine };
}

/** In by one, out by another: urgent first, each once, and from there. */
async function walk(t: TestContext, url: string): Promise<void> {
  const { enqueue, another, db, engine, claim } = await open(t, url);
  const normal = await enqueue(Array(30).fill("normal"));
  const urgent = await enqueue(Array(2).fill("urgent"));
  const { rows } = await db.query("select count(*)::integer as n from carillon.ready");
  assert.deepEqual(rows, [{ n: 0 }], "nothing waits in PostgreSQL");
  const some = (await another.claim(2, 12, LEASE_MS)).map(({ id }) => id);
  assert.deepEqual(some, [...urgent, ...normal.slice(0, 10)]);
  await tend(engine, db);
  assert.deepEqual(await claim(), normal.slice(10));
  assert.deepEqual(await claim(), []);
}

test("a cluster", { skip }, async (t) => walk(t, (await start(t, { isCluster: true })).url));

test("a user who may do what the documentation says, and nothing else", { skip }, async (t) => {
  const { port } = await start(t);
  const may = "+info +time +eval +evalsha +del +@sortedset +@string";
  assert.match(await tell(port, `ACL SETUSER bells on >a-word ~{q}:* resetchannels -@all ${may}`), /^\+OK/);
  await walk(t, `redis://bells:a-word@127.0.0.1:${port}`);
});

test("TLS, and not where nobody vouches for it", { skip }, async (t) => {
  const home = await serverHome("certificates");
  const [key, certificate] = [join(home, "key.pem"), join(home, "certificate.pem")];
  await writeFile(key, PRIVATE_KEY);
  await writeFile(certificate, CERTIFICATE);
  const port = await freePort();
  const tls = { "tls-cert-file": certificate, "tls-key-file": key, "tls-ca-cert-file": certificate };
  await start(t, { more: { "tls-port": String(port), "tls-auth-clients": "no", ...tls } });
  const url = `rediss://localhost:${port}`;
  const known = getCACertificates("default");
  const failure = await new Promise<Error>((resolve) => {
    const watch = { away: (error: unknown) => resolve(error as Error), back: () => undefined };
    openRedis({ url, prefix: "q" }, "a test", watch).then((redis) => t.after(redis.close));
  });
  assert.match(failure.message, /self-signed|unable to verify/);
  setDefaultCACertificates([...known, CERTIFICATE]);
  t.after(() => setDefaultCACertificates(known));
  await walk(t, url);
});

test("a sentinel leads to the next one, which gives each once, in order", { skip }, async (t) => {
  const first = await start(t);
  const second = await start(t, { more: { replicaof: `127.0.0.1 ${first.port}` } });
  const sentinel = (await startSentinel(first.port)) as RedisServer;
  t.after(sentinel.stop);
  const { enqueue, db, engine, claim } = await open(t, sentinel.url);
  const ids = await enqueue(Array(20).fill("normal"));
  // The replica has some of it, and the sentinel has seen the replica.
  await until(async () => ((await tell(first.port, "WAIT 1 1000")).startsWith(":1") ? true : undefined));
  await until(async () => ((await tell(sentinel.port, "SENTINEL replicas bells")).startsWith("*1") ? true : undefined));
  await tell(second.port, "REPLICAOF NO ONE");
  const late = await enqueue(Array(5).fill("normal"));
  await first.kill();
  const got: string[] = [];
  await until(async () => {
    await tend(engine, db).catch(() => undefined);
    got.push(...(await claim()));
    await sleep(100);
    return got.length >= ids.length + late.length ? true : undefined;
  });
  assert.deepEqual(got, [...ids, ...late]);
});
