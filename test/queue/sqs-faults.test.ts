// What SQS may do, and what comes of it: nothing is sent twice, and nothing is lost.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { PRIORITIES, RANKS } from "#domain/priority.ts";
import type { Engine, Entry } from "#queue/engine.ts";
import type { Queue } from "#queue/queue.ts";
import type { SqsEngine } from "#queue/sqs/engine.ts";
import { LEASE_MS, SENT, settled } from "../conformance/queue-harness.ts";
import { setUpQueue, tend } from "../support/queue-on-postgres.ts";
import { startSqs } from "../support/servers/sqs.ts";
import { createEngine, emptyQueues, openQueues } from "../support/sqs-engine.ts";
import { startSqsProxy } from "../support/sqs-proxy.ts";
import { until } from "../support/until.ts";

const server = await startSqs();
const proxy = await startSqsProxy(server.endpoint);

const NORMAL = 2;
/** So soon messages come again that nobody answers for, and what is not in SQS is lost. */
const SOON = { visibleMs: 3_000, patience: { oldMs: 0, emptyMs: 0 } };

const told: number[] = [];
/** Before whoever takes by the first of two processes has it. */
let held: (taken: readonly Entry[]) => Promise<void> = async () => {};
const opened = openQueues(proxy.endpoint, "faults");
const { queues, counts } = opened;
const engines: SqsEngine[] = [];
const { queue, another, enqueue, look, db, clear, stop } = await setUpQueue({
  engines: (own) => {
    for (let n = 0; n < 2; n++)
      engines.push(createEngine(opened, { db: own, ...SOON, onForeign: (rank) => told.push(rank) }));
    const [one, other] = engines as [SqsEngine, SqsEngine];
    const first: Engine = {
      ...one,
      // What could not be offered is left to the keeper, as in the service.
      offer: (handoffs) => one.offer(handoffs).catch(() => []),
      async take(ask) {
        const take = await one.take(ask);
        await held(take.entries);
        return take;
      },
    };
    return [first, other];
  },
  empty: () => emptyQueues(opened),
});
const [engine] = engines as [SqsEngine];

const behave = () => {
  for (const misdeed of Object.keys(proxy.misdeeds)) Reflect.deleteProperty(proxy.misdeeds, misdeed);
};
afterEach(async () => {
  behave();
  held = async () => {};
  await clear();
});
after(async () => {
  for (const one of engines) await one.close();
  await opened.close();
  await stop();
  await proxy.stop();
  await server.stop();
});

const isEmpty = async () => {
  for (const rank of RANKS) {
    const { visible, held: received } = await counts(rank);
    if (visible + received > 0) return undefined;
  }
  return true;
};

/** Claims and settles until so many were claimed. */
async function drain(queues: readonly Queue[], count: number, atOnce = 37): Promise<string[]> {
  const claimed: string[] = [];
  await until(async () => {
    const some = (await Promise.all(queues.map((queue, n) => queue.claim(n + 1, atOnce, LEASE_MS)))).flat();
    const [first] = queues as [Queue];
    assert.ok((await first.settle(some.map((attempt) => settled(attempt, SENT)))).every(Boolean));
    claimed.push(...some.map(({ id }) => id));
    return claimed.length >= count ? true : undefined;
  });
  return claimed;
}

test("messages that come twice, in any order, and to two processes are sent once each, and are gone in the end", async () => {
  Object.assign(proxy.misdeeds, { sendsTwice: true, shuffles: true });
  const ids: string[] = [];
  for (let n = 0; n < 30; n++)
    ids.push(...(await enqueue(Array.from({ length: 11 }, (_, m) => PRIORITIES[m % 4] ?? "low"))));
  const claimed = await drain([queue, another], ids.length);
  assert.deepEqual(claimed.toSorted(), ids.toSorted());
  // The copies are given out as well, and deleted without anybody having them.
  await until(async () => {
    assert.deepEqual(await queue.claim(1, 100, LEASE_MS), []);
    assert.deepEqual(await another.claim(1, 100, LEASE_MS), []);
    return isEmpty();
  });
  for (const id of ids.slice(0, 40)) assert.deepEqual((await look(id)).attempts, [1]);
});

test("who is so slow that his messages are given to another claims nothing of what that one has", async () => {
  const ids = await enqueue(Array(150).fill("normal"));
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  let took = 0;
  held = async ({ length }) => {
    took += length;
    if (length > 0) await gate;
  };
  const slow = until(async () => {
    const some = await queue.claim(1, 1_000, LEASE_MS);
    return took > 0 ? some : undefined;
  });
  await until(async () => (took > 0 ? true : undefined));
  const claimed = await drain([another], ids.length);
  assert.deepEqual(claimed.toSorted(), ids.toSorted());
  go();
  assert.deepEqual(await slow, []);
});

test("what was purged is offered again once the queue is seen to be empty, and not before", async () => {
  const ids = await enqueue(Array(250).fill("normal"));
  const isNoted = async () => {
    const { rows } = await db.query("select from carillon.handoffs where offered_at is null");
    return rows.length === 0 ? true : undefined;
  };
  await until(isNoted);
  assert.equal(await tend(engine, db), 0, "it is there");
  await queues.ask(NORMAL, "PurgeQueue", {});
  await until(isEmpty);
  assert.equal(await tend(engine, db), 250);
  assert.equal(await tend(engine, db), 0, "it is there again");
  assert.deepEqual((await drain([queue], 250)).toSorted(), ids.toSorted());
  assert.equal(await tend(engine, db), 0, "it is over");
});

test("what was offered a day ago, or by nobody, is offered again, and claimed once", async () => {
  const ids = await enqueue(["normal", "high"]);
  await db.query("update carillon.handoffs set offered_at = clock_timestamp() - interval '25 hours'");
  proxy.misdeeds.isAway = true;
  ids.push(...(await enqueue(["low", "low"])));
  delete proxy.misdeeds.isAway;
  await db.query("update carillon.handoffs set handed_at = handed_at - interval '1 minute'");
  assert.equal(await until(async () => (await tend(engine, db)) || undefined), 4);
  assert.deepEqual((await drain([queue], 4)).toSorted(), ids.toSorted());
});

test("while SQS is away or has too much to do everything else goes on, it is asked seldom, and then what waits is delivered", async () => {
  assert.deepEqual(await queue.claim(1, 10, LEASE_MS), []);
  const [later] = await enqueue(["normal"], { scheduledFor: new Date(Date.now() + 300).toISOString() });
  for (const misdeed of [
    { isAway: true },
    { refuses: { ReceiveMessage: "ThrottlingException", SendMessageBatch: "ThrottlingException" } },
  ]) {
    Object.assign(proxy.misdeeds, misdeed);
    const before = proxy.asked.ReceiveMessage ?? 0;
    const startedAt = performance.now();
    const [id] = (await enqueue(["urgent"])) as [string];
    assert.equal((await look(id)).status, "queued");
    await until(async () => {
      await queue.claim(1, 10, LEASE_MS);
      return performance.now() - startedAt > 1_500 ? true : undefined;
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    assert.ok((proxy.asked.ReceiveMessage ?? 0) - before < 20 * seconds, "about once each time it may be back");
    behave();
    const claimed = await until(async () => {
      await tend(engine, db);
      const some = await queue.claim(1, 10, LEASE_MS);
      return some.length > 0 ? some : undefined;
    });
    assert.deepEqual(
      claimed.map((attempt) => attempt.id),
      [id],
    );
  }
  assert.equal((await look(later as string)).status, "processing", "what PostgreSQL has was claimed meanwhile");
});

test("whoever wants some is woken when it comes", async () => {
  const woken = new Promise<void>((resolve) => engine.watch?.(resolve));
  assert.deepEqual(await queue.claim(1, 10, LEASE_MS), []);
  const ids = await enqueue(["normal"]);
  await woken;
  assert.deepEqual(
    (await queue.claim(1, 10, LEASE_MS)).map(({ id }) => id),
    ids,
  );
});

test("what nobody who takes here may take is PostgreSQL's, and what nobody took in time is others'", async () => {
  const ids = await enqueue(["normal", "normal"]);
  await until(async () => {
    assert.deepEqual(await queue.claim(1, 10, LEASE_MS, { ranks: RANKS, channels: ["sms"] }), []);
    const { rows } = await db.query("select from carillon.ready");
    return rows.length === 2 ? true : undefined;
  });
  await until(isEmpty);
  assert.deepEqual(
    (await queue.claim(1, 10, LEASE_MS)).map(({ id }) => id),
    ids,
  );
  const [passed] = await enqueue(["normal"]);
  await until(async () => {
    assert.deepEqual(await queue.claim(1, 10, LEASE_MS, { ranks: RANKS, notTenants: [1] }), []);
    return engine.standing(NORMAL).waiting > 0 ? true : undefined;
  });
  // It was passed over until its time was up: whoever has room for that tenant finds it in PostgreSQL.
  await until(async () => ((await db.query("select from carillon.ready")).rows.length === 1 ? true : undefined));
  assert.deepEqual(
    (await another.claim(2, 10, LEASE_MS)).map(({ id }) => id),
    [passed],
  );
});

test("a message that is not ours is deleted, and told of", async () => {
  const foreign = ["hello", "1\nzzzzzzzzzzz zzzzzzzzzzz 1 1 1 - AAAAAAAAAAAAAAAAAAAAAA"];
  const Entries = foreign.map((MessageBody, n) => ({ Id: `${n}`, MessageBody }));
  await queues.ask(NORMAL, "SendMessageBatch", { Entries });
  const ids = await enqueue(["normal"]);
  assert.deepEqual(await drain([queue], 1), ids);
  await until(isEmpty);
  assert.deepEqual(told, [NORMAL, NORMAL]);
});

test("a queue that cannot be made, or forgets too soon, is told of by name", async (t) => {
  proxy.misdeeds.refuses = { CreateQueue: "AccessDenied" };
  const refused = openQueues(proxy.endpoint, "refused");
  t.after(() => refused.close());
  const words =
    /^there is no queue refused-urgent, and it could not be made: SQS answered 403: AccessDenied: the policy says no$/;
  await assert.rejects(refused.queues.check(), (error: Error) => words.test(error.message));
  delete proxy.misdeeds.refuses;
  const QueueName = "short-urgent";
  await refused.sqs.ask("CreateQueue", { QueueName, Attributes: { MessageRetentionPeriod: "3600" } });
  const short = openQueues(proxy.endpoint, "short");
  t.after(() => short.close());
  await assert.rejects(short.queues.check(), /the queue short-urgent of SQS keeps messages for 3600 s/);
});

test("a queue that somebody deleted is made again, with what was in it", async () => {
  const ids = await enqueue(["normal"]);
  server.deleteQueue("faults-normal");
  ids.push(...(await enqueue(["normal"])));
  const claimed: string[] = [];
  await until(async () => {
    await tend(engine, db);
    claimed.push(...(await queue.claim(1, 10, LEASE_MS)).map(({ id }) => id));
    return claimed.length >= ids.length ? true : undefined;
  });
  assert.deepEqual(claimed.toSorted(), ids.toSorted());
});

test("of a notification SQS is asked as often as its commit has few others", async (t) => {
  const { sqs } = opened;
  const sum = () => {
    const {
      SendMessageBatch = 0,
      ReceiveMessage = 0,
      DeleteMessageBatch = 0,
      ChangeMessageVisibilityBatch = 0,
    } = sqs.requests();
    return SendMessageBatch + ReceiveMessage + DeleteMessageBatch + ChangeMessageVisibilityBatch;
  };
  for (const [size, commits, most] of [
    [1, 100, 3.5],
    [50, 20, 0.1],
    [1000, 3, 0.03],
  ] as const) {
    const before = sum();
    for (let n = 0; n < commits; n++) await enqueue(Array(size).fill("low"));
    await drain([queue], size * commits, 1_000);
    await until(async () => ((await counts(3)).held === 0 ? true : undefined));
    const each = (sum() - before) / (size * commits);
    t.diagnostic(`commits of ${size}: ${each.toFixed(4)} requests a notification`);
    assert.ok(each <= most, `${each}`);
  }
});
