// Whatever ends while a topic is read, the broker, the process, its place in the group: what was produced is accepted, each once.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Consumer } from "@platformatic/kafka";
import { leave } from "#sources/kafka-asking.ts";
import {
  assertAccepted,
  kafkaUnderTest,
  message,
  messages,
  readingService,
  untilSome,
} from "../support/kafka-source.ts";
import { sandboxFor } from "../support/process.ts";

const { kafka, skip } = await kafkaUnderTest();
const PARTITIONS = 4;

/** In chunks, so that there is a midst to end something in. */
async function write(topic: string, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 100)
    await kafka.writer.send(topic, messages(at, Math.min(at + 100, to), PARTITIONS));
}

test("the broker is killed and comes back, in the midst of reading", { skip }, async () => {
  await kafka.createTopic("killed", PARTITIONS);
  await write("killed", 0, 4_000);
  const running = await readingService({ killed: kafka.settings("killed") });
  try {
    await untilSome(running, 500);
    await kafka.kill();
    await kafka.restart();
    await write("killed", 4_000, 5_000);
    await assertAccepted(running, 5_000, PARTITIONS);
    await kafka.restart();
    await write("killed", 5_000, 5_500);
    await assertAccepted(running, 5_500, PARTITIONS);
  } finally {
    await running.stop();
  }
});

test("others join and leave the group, in the midst of reading", { skip }, async () => {
  await kafka.createTopic("shared", PARTITIONS);
  const first = await readingService({ shared: kafka.settings("shared") });
  try {
    let written = 0;
    const some = () => {
      written += 500;
      return write("shared", written - 500, written);
    };
    await some();
    for (let round = 0; round < 3; round++) {
      const other = await readingService({ shared: kafka.settings("shared") }, first);
      await some();
      await untilSome(first, written - 300);
      await some();
      await other.stop();
    }
    await assertAccepted(first, written, PARTITIONS);
  } finally {
    await first.stop();
  }
});

test("two read the same partitions at once, as one does that the group has given up and that does not know", {
  skip,
}, async () => {
  await kafka.createTopic("zombies", PARTITIONS);
  const first = await readingService({ zombies: kafka.settings("zombies") });
  const second = await readingService({ zombies: kafka.settings("zombies", { group: "another" }) }, first);
  try {
    await write("zombies", 0, 3_000);
    await assertAccepted(first, 3_000, PARTITIONS);
  } finally {
    await second.stop();
    await first.stop();
  }
});

test("a process is killed in the midst of reading, and another goes on", { skip }, async (t) => {
  await kafka.createTopic("process", PARTITIONS);
  await write("process", 0, 5_000);
  const idle = await readingService({});
  try {
    const env = {
      DATABASE_URL: idle.databaseUrl,
      CARILLON_ROLES: "source",
      CARILLON_SOURCES: JSON.stringify({ process: kafka.settings("process") }),
    };
    const child = await (await sandboxFor(t)).start(env);
    await untilSome(idle, 300);
    await child.end("SIGKILL");
    await kafka.writer.send("process", [message(5_000, { partition: 0 })]);
    // The group would miss it after a while. Whoever reads by another group need not wait, and goes on from the same place.
    const next = await readingService({ process: kafka.settings("process", { group: "the-next" }) }, idle);
    try {
      await assertAccepted(idle, 5_001, PARTITIONS);
    } finally {
      await next.stop();
    }
  } finally {
    await idle.stop();
  }
});

test("who leaves after the group has given it up asks for nothing any more", { skip }, async () => {
  await kafka.createTopic("given-up", PARTITIONS);
  const consumer = new Consumer<Buffer, Buffer, Buffer, Buffer>({
    ...kafka.reached,
    clientId: "one",
    groupId: "given-up",
    heartbeatInterval: 20,
  });
  consumer.on("error", () => undefined);
  consumer.topics.track("given-up");
  await consumer.joinGroup({});
  await once(consumer, "consumer:heartbeat:end");
  // As the client has it when it hears that it is unknown.
  consumer.memberId = null;
  await leave(consumer);
  let asked = 0;
  for (const event of ["start", "error"] as const) consumer.on(`consumer:heartbeat:${event}`, () => asked++);
  await sleep(500);
  assert.equal(asked, 0);
});
