import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  type BaseOptions,
  Consumer,
  MessagesStreamModes,
  ProduceAcks,
  Producer,
  stringDeserializers,
  stringSerializers,
} from "@platformatic/kafka";
import { CERTIFICATE } from "../certificate.ts";
import { isAlive } from "../process.ts";
import { KAFKA_USER, NO_KAFKA, startKafka } from "./kafka.ts";

test("what Kafka has acknowledged outlives a restart and a kill -9, and nothing of it is left in the end", async (t) => {
  const server = await startKafka();
  if (server === undefined) return t.skip(NO_KAFKA);
  t.after(server.stop);
  const to = { bootstrapBrokers: [server.bootstrap], retries: true };
  await server.createTopic("facts", 3);

  await produce(to, ["1"]);
  const first = server.pid();
  await server.restart();
  assert.ok(!isAlive(first));
  assert.deepEqual(await consume(to, 1), ["1"]);

  await produce(to, ["2", "3"]);
  await server.kill();
  await assert.rejects(produce({ ...to, retries: 0 }, ["lost"]));
  await server.restart();
  assert.deepEqual(await consume(to, 3), ["1", "2", "3"]);

  await server.stop();
  assert.ok(!isAlive(server.pid()));
});

test("a secured Kafka talks by TLS, and only to who knows the password", async (t) => {
  const server = await startKafka({ secured: true });
  if (server === undefined) return t.skip(NO_KAFKA);
  t.after(server.stop);
  const to = { bootstrapBrokers: [server.bootstrap], retries: true, tls: { ca: CERTIFICATE } };
  const sasl = { mechanism: "PLAIN" as const, ...KAFKA_USER };
  await server.createTopic("facts");

  await assert.rejects(produce({ ...to, retries: 0, sasl: { ...sasl, password: "wrong" } }, ["a wrong password"]));
  await assert.rejects(produce({ ...to, retries: 0 }, ["none"]));
  await produce({ ...to, sasl }, ["1"]);
  assert.deepEqual(await consume({ ...to, sasl }, 1), ["1"]);
});

type To = Omit<BaseOptions, "clientId">;

async function produce(to: To, values: string[]): Promise<void> {
  const producer = new Producer({ ...to, clientId: "producer", serializers: stringSerializers });
  try {
    const messages = values.map((value) => ({ topic: "facts", key: value, value }));
    await producer.send({ messages, acks: ProduceAcks.ALL });
  } finally {
    await producer.close(true);
  }
}

/** The first values there are, sorted: partitions have no order among them. */
async function consume(to: To, count: number): Promise<string[]> {
  const groupId = randomUUID();
  const consumer = new Consumer({ ...to, clientId: "consumer", groupId, deserializers: stringDeserializers });
  try {
    const stream = await consumer.consume({ topics: ["facts"], mode: MessagesStreamModes.EARLIEST });
    const values: string[] = [];
    for await (const { value } of stream) {
      values.push(value);
      if (values.length >= count) break;
    }
    return values.sort();
  } finally {
    await consumer.close(true);
  }
}
