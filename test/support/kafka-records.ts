// What stands in a topic.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Consumer, ListOffsetTimestamps, type Message, MessagesStreamModes } from "@platformatic/kafka";

/** After this a reader is made anew: one that joins while a broker comes back may wait for ever. */
const MOST_MS = 15_000;
const TRIES = 10;

/** All of it, each partition in order. */
export async function recordsOf(bootstrap: string, topic: string): Promise<Message[]> {
  for (let n = 0; n < TRIES; n++) {
    const consumer = new Consumer({ clientId: "carillon-test", groupId: randomUUID(), bootstrapBrokers: [bootstrap] });
    const over = new AbortController();
    const tooLong = sleep(MOST_MS, undefined, { signal: over.signal }).catch(() => undefined);
    const records = await Promise.race([read(consumer, topic), tooLong]).finally(() => over.abort());
    const closed = consumer.close(true).catch(() => undefined);
    if (records) return closed.then(() => records);
  }
  throw new Error(`the topic ${topic} could not be read`);
}

async function read(consumer: Consumer, topic: string): Promise<Message[]> {
  const ends = await consumer.listOffsets({ topics: [topic], timestamp: ListOffsetTimestamps.LATEST });
  const left = new Map([...(ends.get(topic) ?? []).entries()].filter(([, end]) => end > 0n));
  const records: Message[] = [];
  if (left.size === 0) return records;
  const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false });
  for await (const message of stream) {
    records.push(message);
    const end = left.get(message.partition);
    if (end !== undefined && message.offset >= end - 1n) left.delete(message.partition);
    if (left.size === 0) break;
  }
  return records;
}
