// A queue of a test's own, and what came into it.

import { randomUUID } from "node:crypto";
import { type ChannelModel, connect, type Message } from "amqplib";

export type TestQueue = {
  exchange: string;
  /** In the order in which they came, over restarts of the server too. */
  taken(): Promise<readonly Message[]>;
};

/**
 * A durable queue, bound to a topic exchange by these keys. A quorum queue of a single node of RabbitMQ 3.10 may stay without
 * a leader after kill -9, so the classic one is killed.
 */
export async function makeQueue(
  url: string,
  keys: readonly string[],
  type: "classic" | "quorum" = "classic",
): Promise<TestQueue> {
  const exchange = `facts-${randomUUID()}`;
  await connected(url, async (connection) => {
    const channel = await connection.createChannel();
    await channel.assertExchange(exchange, "topic", { durable: true });
    await channel.assertQueue(exchange, { durable: true, arguments: { "x-queue-type": type } });
    for (const key of keys) await channel.bindQueue(exchange, exchange, key);
  });
  const messages: Message[] = [];
  return {
    exchange,
    async taken() {
      await connected(url, async (connection) => {
        const channel = await connection.createConfirmChannel();
        // Behind all that is there: when it comes out, they have.
        const last = randomUUID();
        channel.sendToQueue(exchange, Buffer.alloc(0), { messageId: last, persistent: true });
        await channel.waitForConfirms();
        let isOver = false;
        const end = await new Promise<Message>((resolve, reject) => {
          const take = (message: Message | null) => {
            if (message === null) return reject(new Error("the queue is gone"));
            // What comes behind is not acknowledged, and comes again.
            if (isOver) return;
            isOver = message.properties.messageId === last;
            if (isOver) resolve(message);
            // An older one whose end the server was killed before it had kept is passed by.
            else if (message.content.length > 0) messages.push(message);
          };
          connection.on("close", () => reject(new Error("the connection is gone")));
          channel.consume(exchange, take).catch(reject);
        });
        channel.ack(end, true);
        await channel.close();
      });
      return messages;
    },
  };
}

export async function connected<Result>(
  url: string,
  use: (connection: ChannelModel) => Promise<Result>,
): Promise<Result> {
  const connection = await connect(url, { noDelay: true });
  connection.on("error", () => undefined);
  try {
    return await use(connection);
  } finally {
    await connection.close().catch(() => undefined);
  }
}
