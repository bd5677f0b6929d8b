import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChannelModel, connect } from "amqplib";
import { isAlive } from "../process.ts";
import { NO_RABBITMQ, startRabbitMQ } from "./rabbitmq.ts";

test("what RabbitMQ has confirmed outlives a restart and a kill -9, and nothing of it is left in the end", async (t) => {
  const server = await startRabbitMQ();
  if (server === undefined) return t.skip(NO_RABBITMQ);
  t.after(server.stop);
  const take = (text: string) =>
    connected(server.url, async (connection) => {
      const channel = await connection.createConfirmChannel();
      await channel.assertQueue("facts", { durable: true, arguments: { "x-queue-type": "quorum" } });
      channel.sendToQueue("facts", Buffer.from(text), { persistent: true });
      await channel.waitForConfirms();
    });
  const kept = () =>
    connected(server.url, async (connection) => {
      const channel = await connection.createChannel();
      const texts: string[] = [];
      for (let next = await channel.get("facts"); next; next = await channel.get("facts"))
        texts.push(String(next.content));
      return texts;
    });

  await take("1");
  const first = server.pid();
  await server.restart();
  assert.ok(!isAlive(first));
  assert.deepEqual(await kept(), ["1"]);

  await take("2");
  await server.kill();
  await assert.rejects(kept());
  await server.restart();
  assert.deepEqual((await kept()).sort(), ["1", "2"]);

  await server.stop();
  assert.ok(!isAlive(server.pid()));
});

async function connected<Result>(url: string, use: (connection: ChannelModel) => Promise<Result>): Promise<Result> {
  const connection = await connect(url);
  connection.on("error", () => undefined);
  const result = await use(connection);
  await connection.close();
  return result;
}
