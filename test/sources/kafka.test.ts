// The Kafka source with a real broker and a whole Carillon: what is in a topic becomes notifications, whatever else is in it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Producer } from "@platformatic/kafka";
import { openKafkaSource } from "#sources/kafka.ts";
import { sourceConformance } from "../conformance/source.ts";
import {
  assertAccepted,
  kafkaUnderTest,
  LONG_MS,
  message,
  messages,
  readingService,
  untilSome,
} from "../support/kafka-source.ts";
import { readTopic, withAdmin } from "../support/kafka-topic.ts";
import { acceptedBodies, request } from "../support/keeping.ts";
import type { Service } from "../support/service.ts";
import { until } from "../support/until.ts";

const { kafka, skip } = await kafkaUnderTest({
  settings: { "log.cleaner.backoff.ms": 100, "group.initial.rebalance.delay.ms": 0 },
});

const refusalsOf = async ({ db }: Service) =>
  (await db.query("select place, code from carillon.refusals order by id")).rows.map(({ place, code }) => [
    place,
    code,
  ]);
const sourceOf = async ({ ask }: Service, name: string) =>
  (await ask("GET", "/v1/sources")).body.data.find((one: { name: string }) => one.name === name);

test("what a topic holds and what comes later is accepted in order; poison among it is refused, listed and told to a topic", {
  skip,
}, async () => {
  await kafka.createTopic("first");
  await kafka.createTopic("first-refused");
  await kafka.writer.send("first", [
    message(0),
    { value: "poison", headers: { who: "me" } },
    message(1),
    { value: null, key: "k" },
  ]);
  const running = await readingService({ first: kafka.settings("first", { refusals: "first-refused" }) });
  try {
    await assertAccepted(running, 2);
    await kafka.writer.send("first", [message(2), { value: JSON.stringify(request("x".repeat(300_000))) }, message(3)]);
    await assertAccepted(running, 4);
    assert.deepEqual(await refusalsOf(running), [
      ["first/0/1", "MALFORMED_JSON"],
      ["first/0/5", "PAYLOAD_TOO_LARGE"],
    ]);
    const [poison, large] = await readTopic(kafka.reached, "first-refused", 2);
    assert.equal(poison?.value, "poison");
    const { who, "carillon-code": code, "carillon-place": place, "carillon-faults": faults } = poison?.headers ?? {};
    assert.deepEqual([who, code, place], ["me", "MALFORMED_JSON", "first/0/1"]);
    assert.match(faults ?? "", /not JSON/);
    assert.deepEqual([large?.value, large?.headers["carillon-place"]], [undefined, "first/0/5"]);
    await until(async () => {
      const { rowCount } = await running.db.query("select from carillon.refusals where is_untold");
      return rowCount === 0 ? true : undefined;
    }, LONG_MS);
    const { carried, refused, lag } = await sourceOf(running, "first");
    assert.deepEqual([carried, refused, lag], [4, 2, { messages: 0 }]);
  } finally {
    await running.stop();
  }
});

test("what is refused is told with its value also where that is much, some at a time", { skip }, async () => {
  await kafka.createTopic("much");
  await kafka.createTopic("much-refused");
  const poison = Array.from({ length: 8 }, (_, n) => `${n}${"x".repeat(200_000)}`);
  // One at a time, as a broker takes a megabyte at once.
  for (const value of poison) await kafka.writer.send("much", [{ value }]);
  const running = await readingService({ much: kafka.settings("much", { refusals: "much-refused" }) });
  try {
    const told = await readTopic(kafka.reached, "much-refused", poison.length);
    assert.deepEqual(told.map(({ value }) => value).sort(), poison);
  } finally {
    await running.stop();
  }
});

test("what nobody told to the topic of refusals is told later, without its value", { skip }, async () => {
  await kafka.createTopic("late");
  await kafka.createTopic("late-refused");
  const running = await readingService({ late: kafka.settings("late") });
  try {
    await kafka.writer.send("late", [{ value: "poison" }, message(0)]);
    await assertAccepted(running, 1);
    // As a process leaves it that ended right after the commit.
    await running.db.query("update carillon.refusals set is_untold = true, at = at - interval '1 minute'");
    const telling = await readingService({ late: kafka.settings("late", { refusals: "late-refused" }) }, running);
    try {
      const [told] = await readTopic(kafka.reached, "late-refused", 1);
      assert.deepEqual([told?.value, told?.headers["carillon-place"]], [undefined, "late/0/0"]);
    } finally {
      await telling.stop();
    }
  } finally {
    await running.stop();
  }
});

test("a paused source reads nothing and keeps its place", { skip }, async () => {
  await kafka.createTopic("paused");
  const running = await readingService({ paused: kafka.settings("paused") });
  try {
    await kafka.writer.send("paused", messages(0, 10));
    await assertAccepted(running, 10);
    assert.equal((await running.ask("POST", "/v1/sources/paused/pause", { reason: "a look" })).status, 200);
    // It leaves the group, and only then it is certain that it reads no more.
    await until(async () => {
      const groups = await withAdmin(kafka.reached, (admin) => admin.describeGroups({ groups: ["carillon-paused"] }));
      return groups.get("carillon-paused")?.members.size === 0 ? true : undefined;
    }, LONG_MS);
    await kafka.writer.send("paused", messages(10, 20));
    assert.equal((await running.db.query("select from carillon.notifications")).rowCount, 10);
    assert.equal((await running.ask("POST", "/v1/sources/paused/resume")).status, 200);
    await assertAccepted(running, 20);
  } finally {
    await running.stop();
  }
});

test("where nothing was kept it begins with what comes from now on, if it is told to; partitions that are added are read from their first", {
  skip,
}, async () => {
  await kafka.createTopic("latest");
  await kafka.writer.send("latest", [message(7), message(8)]);
  const running = await readingService({ latest: kafka.settings("latest", { from: "latest" }) });
  try {
    await until(async () => {
      const { rows } = await running.db.query("select next::int from carillon.source_offsets where source = 'latest'");
      return rows[0]?.next === 2 ? true : undefined;
    }, LONG_MS);
    await kafka.writer.send("latest", [message(0)]);
    await assertAccepted(running, 1);
    await withAdmin(kafka.reached, (admin) =>
      admin.createPartitions({ topics: [{ name: "latest", count: 2, assignments: [{ brokerIds: [1] }] }] }),
    );
    const fresh = [message(1, { partition: 1 })];
    await until(
      () =>
        kafka.writer.send("latest", fresh).then(
          () => true,
          () => undefined,
        ),
      LONG_MS,
    );
    await assertAccepted(running, 2);
  } finally {
    await running.stop();
  }
});

test("what Kafka dropped before it was read is left out; a topic that was made anew is not taken for the old one", {
  skip,
}, async () => {
  await kafka.createTopic("dropped");
  await kafka.writer.send("dropped", [message(0), ...messages(100, 110), message(1)]);
  const running = await readingService({ dropped: kafka.settings("dropped") });
  const failure = () => until(async () => (await sourceOf(running, "dropped")).error ?? undefined, LONG_MS);
  try {
    await untilSome(running, 12);
    await running.db.query("delete from carillon.notifications; update carillon.source_offsets set next = 1");
    await withAdmin(kafka.reached, (admin) =>
      admin.deleteRecords({ topics: [{ name: "dropped", partitions: [{ partition: 0, offset: 11n }] }] }),
    );
    // Another process goes on from what is kept.
    const next = await readingService({ dropped: kafka.settings("dropped", { group: "another" }) }, running);
    await untilSome(running, 1);
    await next.stop();
    assert.deepEqual(await acceptedBodies(running.db), ["number 1"]);
    await running.db.query("update carillon.source_offsets set next = 1000");
    const ahead = await readingService({ dropped: kafka.settings("dropped", { group: "yet-another" }) }, running);
    assert.match(JSON.stringify(await failure()), /not the topic that was read before/);
    await ahead.stop();
  } finally {
    await running.stop();
  }
});

test("of transactions only what was committed is accepted, also where the end of one is not in sight", {
  skip,
}, async () => {
  await kafka.createTopic("transactions");
  const producer = new Producer({
    ...kafka.reached,
    clientId: "transactions",
    idempotent: true,
    transactionalId: "t",
    acks: -1,
  });
  const send = async (from: number, to: number, how: "commit" | "abort") => {
    const transaction = await producer.beginTransaction();
    for (let at = from; at < to; at += 100) {
      const some = messages(at, Math.min(at + 100, to));
      await transaction.send({
        messages: some.map(({ value }) => ({ topic: "transactions", value: Buffer.from(value as string) })),
      });
    }
    await transaction[how]();
  };
  await send(0, 3, "commit");
  await send(500, 503, "abort");
  await send(3, 5, "commit");
  // More than one fetch brings.
  await send(1_000, 13_000, "abort");
  await send(5, 7, "commit");
  await producer.close();
  const running = await readingService({ transactions: kafka.settings("transactions") });
  try {
    await assertAccepted(running, 7);
  } finally {
    await running.stop();
  }
});

test("a compacted topic has holes, and what is left of it is accepted", { skip }, async () => {
  const settings = {
    "cleanup.policy": "compact",
    "segment.ms": 50,
    "min.cleanable.dirty.ratio": 0,
    "max.compaction.lag.ms": 50,
    "delete.retention.ms": 0,
  };
  await kafka.createTopic("compacted", 1, settings);
  const old = (n: number) => message(n, { key: "same" });
  await kafka.writer.send("compacted", [old(50), old(51), message(0, { key: "zero" }), { key: "same", value: null }]);
  // Only what is in a segment of old is compacted: each of these begins a new one.
  let n = 0;
  await until(async () => {
    await kafka.writer.send("compacted", [message(1, { key: `one-${n++}` })]);
    const [first] = await readTopic(kafka.reached, "compacted", 1);
    return first?.value?.includes("number 0") ? true : undefined;
  }, LONG_MS);
  const running = await readingService({ compacted: kafka.settings("compacted") });
  try {
    const bodies = await until(async () => {
      const { rows } = await running.db.query(
        "select request->'content'->>'body' as body from carillon.notifications order by id",
      );
      return rows.length >= n + 1 ? rows.map(({ body }) => body) : undefined;
    }, LONG_MS);
    assert.deepEqual(bodies, ["number 0", ...Array.from({ length: n }, () => "number 1")]);
  } finally {
    await running.stop();
  }
});

test("a topic that is not there, or a broker that is away, is said", { skip }, async () => {
  const running = await readingService({
    nowhere: kafka.settings("nowhere"),
    away: { ...kafka.settings("first"), brokers: ["127.0.0.1:1"] },
  });
  try {
    for (const [name, said] of [
      ["nowhere", /unknown topic/i],
      ["away", /ECONNREFUSED|connect/i],
    ] as const) {
      const found = await until(async () => {
        const { rows } = await running.db.query(
          "select error from carillon.connectors where name = $1 and error is not null",
          [name],
        );
        return rows[0]?.error as string | undefined;
      }, LONG_MS);
      assert.match(found, said);
    }
  } finally {
    await running.stop();
  }
});

if (!skip) {
  sourceConformance("Kafka", {
    async create(partitions) {
      const topic = `conformance-${crypto.randomUUID()}`;
      await kafka.createTopic(topic, partitions);
      return {
        topic,
        write: (partition, values) =>
          kafka.writer.send(
            topic,
            values.map((value) => ({ value, partition })),
          ),
        // As another member would be: not after the one before was missed.
        open: (keeping) =>
          openKafkaSource(kafka.settings(topic, { group: crypto.randomUUID() }), "conformance", keeping),
      };
    },
  });
}
