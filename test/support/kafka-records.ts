// What stands in a topic.

import { randomUUID } from "node:crypto";
import { Consumer, ListOffsetTimestamps, type Message, MessagesStreamModes } from "@platformatic/kafka";

/** All of it, each partition in order. */
export async function recordsOf(bootstrap: string, topic: string): Promise<Message[]> {
  const consumer = new Consumer({ clientId: "carillon-test", groupId: randomUUID(), bootstrapBrokers: [bootstrap] });
  const records: Message[] = [];
  try {
    const ends = await consumer.listOffsets({ topics: [topic], timestamp: ListOffsetTimestamps.LATEST });
    const left = new Map((ends.get(topic) ?? []).map((end, partition) => [partition, end]));
    for (const [partition, end] of left) if (end === 0n) left.delete(partition);
    if (left.size === 0) return records;
    const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false });
    for await (const message of stream) {
      records.push(message);
      const end = left.get(message.partition);
      if (end !== undefined && message.offset >= end - 1n) left.delete(message.partition);
      if (left.size === 0) break;
    }
    return records;
  } finally {
    await consumer.close(true);
  }
}
