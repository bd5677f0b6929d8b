// What is there at the end: in topics, in a queue, in a table.

import { randomUUID } from "node:crypto";
import { Consumer, MessagesStreamModes } from "@platformatic/kafka";
import { connect, type Message } from "amqplib";
import type { Arrivals } from "./history.ts";

type Found = { topic: string; partition: number; offset: number; key: string; headers: ReadonlyMap<string, string> };

/** As a CloudEvent's type has it. */
const PREFIX = /^carillon\./;
const END = -1n;

/** By partition, where it ends. */
export async function endsOf(bootstrap: string, topic: string): Promise<number[]> {
  return reading(bootstrap, async (consumer) =>
    Array.from((await consumer.listOffsets({ topics: [topic], timestamp: END })).get(topic) ?? [], Number),
  );
}

/** All that a topic has, by partition, in order. */
export async function readTopic(bootstrap: string, topic: string): Promise<Found[]> {
  const count = (await endsOf(bootstrap, topic)).reduce((sum, end) => sum + end, 0);
  const found: Found[] = [];
  if (count === 0) return found;
  return reading(bootstrap, async (consumer) => {
    const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false });
    for await (const { partition, offset, key, headers } of stream) {
      const said = [...headers].map(([name, one]) => [name.toString(), one.toString()] as const);
      found.push({ topic, partition, offset: Number(offset), key: key?.toString() ?? "", headers: new Map(said) });
      if (found.length >= count) break;
    }
    return found.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
  });
}

async function reading<Value>(bootstrap: string, act: (consumer: Consumer) => Promise<Value>): Promise<Value> {
  const groupId = `reader-${randomUUID()}`;
  const consumer = new Consumer({ clientId: "reader", bootstrapBrokers: [bootstrap], groupId, retries: 10 });
  try {
    return await act(consumer);
  } finally {
    await consumer.close(true).catch(() => undefined);
  }
}

export async function arrivedInTopic(bootstrap: string, topic: string): Promise<Arrivals> {
  const found = await readTopic(bootstrap, topic);
  const facts = found.map(({ headers }) => ({
    id: headers.get("ce_id") ?? "",
    type: (headers.get("ce_type") ?? "").replace(PREFIX, ""),
  }));
  return { sink: "kafka", isSet: false, facts };
}

/** A durable queue that gets everything that is published to its exchange, which is called the same. */
export async function makeQueue(url: string, name: string): Promise<void> {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  await channel.assertExchange(name, "topic", { durable: true });
  await channel.assertQueue(name, { durable: true });
  await channel.bindQueue(name, name, "#");
  await connection.close();
}

export async function arrivedInQueue(url: string, name: string): Promise<Arrivals> {
  const connection = await connect(url);
  try {
    const channel = await connection.createConfirmChannel();
    // Behind all that is there: when it comes out, they have.
    const last = randomUUID();
    channel.sendToQueue(name, Buffer.alloc(0), { messageId: last, persistent: true });
    await channel.waitForConfirms();
    const facts: Arrivals["facts"] = [];
    await new Promise<void>((resolve, reject) => {
      const take = (message: Message | null) => {
        if (message === null) return reject(new Error("the queue is gone"));
        const { messageId, headers } = message.properties;
        if (messageId === last) return resolve();
        facts.push({ id: String(messageId), type: String(headers?.["cloudEvents:type"]).replace(PREFIX, "") });
      };
      connection.on("close", () => reject(new Error("the connection is gone")));
      channel.consume(name, take).catch(reject);
    });
    return { sink: "rabbitmq", isSet: false, facts };
  } finally {
    await connection.close().catch(() => undefined);
  }
}

export async function arrivedInTable(url: string): Promise<Arrivals> {
  const answer = await fetch(url, { method: "POST", body: "select id, type from carillon.facts format TabSeparated" });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`ClickHouse cannot be asked: ${text}`);
  const facts = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("\t"))
    .map(([id = "", type = ""]) => ({ id, type }));
  return { sink: "clickhouse", isSet: true, facts };
}
