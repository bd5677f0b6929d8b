// A topic of a real Kafka, written to and read as others would.

import { Admin, type BaseOptions, Consumer, MessagesStreamModes, Producer } from "@platformatic/kafka";

export type ToSend = {
  key?: string;
  value: string | Buffer | null;
  partition?: number;
  headers?: { [name: string]: string };
};
export type Reached = Omit<BaseOptions, "clientId">;

export type Writer = { send(topic: string, messages: readonly ToSend[]): Promise<void>; close(): Promise<void> };

/** Each message is there once when it resolves, whatever became of the connection meanwhile. */
export function writerTo(reached: Reached): Writer {
  const producer = new Producer({
    ...reached,
    clientId: "writer",
    idempotent: true,
    acks: -1,
    retries: 20,
    retryDelay: 200,
  });
  return {
    async send(topic, messages) {
      await producer.send({
        messages: messages.map(({ key, value, partition, headers = {} }) => ({
          topic,
          ...(partition !== undefined && { partition }),
          ...(key !== undefined && { key: Buffer.from(key) }),
          ...(value !== null && { value: Buffer.from(value) }),
          headers: new Map(Object.entries(headers).map(([name, said]) => [Buffer.from(name), Buffer.from(said)])),
        })),
      });
    },
    close: () => producer.close().catch(() => undefined),
  };
}

export type Found = { value: string | undefined; headers: { [name: string]: string } };

/** The first so many of a topic, from its beginning on. */
export async function readTopic(reached: Reached, topic: string, count: number): Promise<Found[]> {
  const consumer = new Consumer({ ...reached, clientId: "reader", groupId: `reader-${crypto.randomUUID()}` });
  const found: Found[] = [];
  try {
    const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST, autocommit: false });
    for await (const { value, headers } of stream) {
      const said = [...headers].map(([name, one]) => [name.toString(), one.toString()] as const);
      found.push({ value: value?.toString(), headers: Object.fromEntries(said) });
      if (found.length >= count) break;
    }
    return found;
  } finally {
    await consumer.close(true).catch(() => undefined);
  }
}

export async function withAdmin<Value>(reached: Reached, act: (admin: Admin) => Promise<Value>): Promise<Value> {
  const admin = new Admin({ ...reached, clientId: "admin" });
  try {
    return await act(admin);
  } finally {
    await admin.close();
  }
}
