// What a commit hands over to an engine is found again in the record, however it was mixed, and however few of it are wanted at a time.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createIds } from "#domain/ids.ts";
import type { Priority } from "#domain/priority.ts";
import { Problem } from "#domain/problems.ts";
import { type Row, rowFor, storeRows } from "#steps/walk/rows.ts";
import { LEASE_MS, type QueueHarness } from "../conformance/queue-harness.ts";
import { setUpQueue } from "../support/queue-on-postgres.ts";
import { openRedisEngine } from "../support/redis-engine.ts";
import { NO_REDIS, type RedisServer, startRedis, tell } from "../support/servers/redis.ts";

const started = await startRedis();
const skip = started ? false : NO_REDIS;
const server = started as RedisServer;
let opened: Awaited<ReturnType<typeof openRedisEngine>>;
let harness: QueueHarness;
const tenants = [1];

before(async () => {
  if (skip) return;
  opened = await openRedisEngine(server.url);
  const empty = async () => void (await tell(server.port, "FLUSHALL"));
  harness = await setUpQueue({ engines: [opened.engine, opened.engine], empty });
  tenants.push(await harness.tenant("second"), await harness.tenant("third"));
});
beforeEach(() => harness?.clear());
after(async () => {
  await harness?.stop();
  await opened?.close();
  await started?.stop();
});

const began = Date.now();
/** As if all were made at once, however busy the machine: stretches are then cut by their size alone. */
const newId = createIds(() => began);
const numbering = { newId, now: () => new Date() };
const CONSOLE = { channel: "console", content: { body: "b" } };
type Asked = { tenant?: number; priority?: Priority; region?: string; idempotencyKey?: string; expiresAt?: string };
function row({ tenant = 1, ...more }: Asked = {}): Row {
  const made = rowFor(tenant, { ...CONSOLE, ...more }, numbering, new Date());
  if (made instanceof Problem) throw made;
  return made;
}

/** One commit; answers with the ids of those that were accepted. */
async function hand(rows: readonly Row[]): Promise<string[]> {
  const stored = await storeRows(harness.db, rows, { engines: ["redis"] });
  assert.deepEqual(await opened.engine.offer(stored.handed), []);
  const { replays, outside } = stored;
  return rows.map(({ id }) => id).filter((id) => !replays.has(id) && !outside.has(id));
}

/** All there is, so many at a time. */
async function claimAll(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const some = await harness.queue.claim(1, count, LEASE_MS);
    if (some.length === 0) return ids;
    ids.push(...some.map(({ id }) => id));
  }
}

const isOver = async () => {
  const { rows } = await harness.db.query("select (select count(*)::int from carillon.handoffs) as handoffs");
  assert.deepEqual(rows, [{ handoffs: 0 }]);
};

for (const count of [1, 7, 1000])
  test(`lanes and tenants of one commit, ${count} at a time: each is claimed once`, { skip }, async () => {
    const lanes: Priority[] = ["normal", "urgent", "normal", "low", "high"];
    const rows = Array.from({ length: 90 }, (_, n) =>
      row({ tenant: tenants[n % 3] as number, priority: lanes[n % 5] as Priority }),
    );
    const ids = await hand(rows);
    assert.deepEqual((await claimAll(count)).toSorted(), ids.toSorted());
    await isOver();
  });

test("what two processes accept at the same time lies among each other in the record, and each has its own", {
  skip,
}, async () => {
  const mixed = Array.from({ length: 200 }, () => row());
  const isEven = (_: Row, n: number) => n % 2 === 0;
  const even = await hand(mixed.filter(isEven));
  const odd = await hand(mixed.filter((one, n) => !isEven(one, n)));
  assert.deepEqual(await claimAll(30), [...even, ...odd], "as they were accepted, and not as they lie");
  await isOver();
});

test("rows that a commit leaves out, as their key was used or their region cannot be made, move no others", {
  skip,
}, async () => {
  const first = await hand([row({ idempotencyKey: "once" })]);
  // More than a tenant may have: the last of these are refused.
  const many = Array.from({ length: 40 }, (_, n) => row({ region: `new-${n}` }));
  const replayed = row({ idempotencyKey: "once" });
  const others = Array.from({ length: 50 }, () => row());
  const ids = await hand([...many, replayed, ...others]);
  assert.ok(ids.length < many.length + others.length, "some were refused");
  assert.deepEqual((await claimAll(9)).toSorted(), [...first, ...ids].toSorted());
  await isOver();
});

test("more than a block of numbers in one commit", { skip }, async () => {
  const ids = await hand(Array.from({ length: 4_200 }, () => row()));
  assert.deepEqual(await claimAll(1000), ids);
  await isOver();
});

test("rows that are left out of more than a block move no others", { skip }, async () => {
  const keys = Array.from({ length: 64 }, (_, n) => `left out ${n}`);
  const first = await hand(keys.map((idempotencyKey) => row({ idempotencyKey })));
  const before = Array.from({ length: 4_096 }, () => row());
  const after = Array.from({ length: 40 }, () => row());
  const ids = await hand([...before, ...keys.map((idempotencyKey) => row({ idempotencyKey })), ...after]);
  assert.equal(ids.length, before.length + after.length);
  // 57 claims of 73 end with the first of those that come after.
  assert.equal((first.length + before.length + 1) % 73, 0);
  assert.deepEqual(await claimAll(73), [...first, ...ids]);
  await isOver();
});

test("rows whose ids are in no order, and were made at different times", { skip }, async () => {
  const made = rowFor(1, CONSOLE, { newId: createIds(() => began + 5_000), now: () => new Date() }, new Date());
  const late = made as Row;
  const rows = [...Array.from({ length: 60 }, () => row()).reverse(), late];
  const ids = await hand(rows);
  assert.deepEqual(await claimAll(8), ids);
  await isOver();
  const some = Array.from({ length: 40 }, () => row());
  const mixed = await hand([...some.slice(20), ...some.slice(0, 20)]);
  assert.deepEqual(await claimAll(1000), mixed, "none twice");
  const again = await hand(
    some.map(() => row()).toSorted((a, b) => (a.id.at(-1) as string).localeCompare(b.id.at(-1) as string)),
  );
  await harness.db.query("select carillon.queue_bring_home(array(select number from carillon.handoffs))");
  assert.deepEqual(await claimAll(1000), again);
  await isOver();
});

test("cancelled, expired and brought home: what is open of it is told from what is not", { skip }, async () => {
  const soon = new Date(Date.now() + 60_000).toISOString();
  const rows = Array.from({ length: 40 }, (_, n) =>
    row({ priority: n % 2 ? "high" : "normal", ...(n < 6 && { expiresAt: soon }) }),
  );
  const ids = await hand(rows);
  const [first] = ids.slice(10);
  assert.deepEqual(await harness.queue.cancelAll(harness.db, 1, [first as string]), [first]);
  const { rows: held } = await harness.db.query("select id from carillon.handed order by seq");
  assert.deepEqual(
    held.map(({ id }) => id),
    ids.filter((id) => id !== first),
  );
  await harness.db.query(
    "update carillon.notifications set expires_at = carillon.now() - interval '1 s' where expires_at is not null",
  );
  await harness.db.query("update carillon.handoffs set first_expiry = carillon.now() - interval '1 s'");
  const { rows: late } = await harness.db.query("select id from carillon.queue_expire_handed(100)");
  assert.deepEqual(late.map(({ id }) => id).toSorted(), ids.slice(0, 6).toSorted());
  await harness.db.query("select carillon.queue_bring_home(array(select number from carillon.handoffs))");
  assert.deepEqual(
    (await claimAll(1000)).toSorted(),
    ids
      .slice(6)
      .filter((id) => id !== first)
      .toSorted(),
  );
  await isOver();
});
