// How fast facts go from the feed to RabbitMQ and Kafka, beside a bare client that hands over the same pages from memory and waits for the same confirms.

import { Admin, Producer } from "@platformatic/kafka";
import { connect } from "amqplib";
import { cloudEventOf } from "../../src/sinks/cloud-event.ts";
import { openKafkaSink } from "../../src/sinks/kafka.ts";
import { openRabbit } from "../../src/sinks/rabbitmq.ts";
import type { Sink } from "../../src/sinks/sink.ts";
import { startKafka } from "../../test/support/servers/kafka.ts";
import { startRabbitMQ } from "../../test/support/servers/rabbitmq.ts";
import type { Server } from "../../test/support/servers/server.ts";
import { feedFacts, fillFacts } from "../facts.ts";
import { onCleanUp } from "../program.ts";
import type { Case, Part, Scenario, World } from "../scenario.ts";

const FACTS = 100_000;
const PLACE = "bench";

type Page = { id: string; key: string; headers: { [name: string]: string }; content: Buffer }[];
type Broker = {
  server: Server;
  sink: Sink;
  /** Makes the place anew, with nothing in it. */
  empty(): Promise<void>;
  count(): Promise<number>;
  /** Connected; answers when all of a page is confirmed. */
  bare(): Promise<{ send(page: Page): Promise<void>; close(): Promise<void> }>;
};

async function startRabbit(): Promise<Broker> {
  const server = await startRabbitMQ();
  if (!server) throw new Error("there is no RabbitMQ, and it cannot be installed here");
  onCleanUp(server.stop);
  const connection = await connect(server.url, { noDelay: true });
  // The server is ended with the benchmark, before it.
  connection.on("error", () => undefined);
  const channel = await connection.createChannel();
  return {
    server,
    sink: await openRabbit({ type: "rabbitmq", url: server.url, exchange: PLACE }, PLACE),
    async empty() {
      await channel.assertExchange(PLACE, "topic");
      await channel.deleteQueue(PLACE);
      await channel.assertQueue(PLACE, { arguments: { "x-queue-type": "quorum" } });
      await channel.bindQueue(PLACE, PLACE, "#");
    },
    // Its own count of a quorum queue is some seconds late: it says how many it deletes.
    count: async () => (await channel.purgeQueue(PLACE)).messageCount,
    async bare() {
      const own = await connect(server.url, { noDelay: true });
      const confirming = await own.createConfirmChannel();
      return {
        async send(page) {
          for (const { id, headers, content } of page)
            confirming.publish(PLACE, "sent", content, {
              mandatory: true,
              persistent: true,
              messageId: id,
              contentType: "application/json",
              headers,
            });
          await confirming.waitForConfirms();
        },
        close: () => own.close(),
      };
    },
  };
}

async function startKafkaBroker(): Promise<Broker> {
  const server = await startKafka();
  if (!server) throw new Error("there is no Kafka, and it cannot be installed here");
  onCleanUp(server.stop);
  const reached = { clientId: "bench", bootstrapBrokers: [server.bootstrap] };
  const admin = new Admin(reached);
  let topic = PLACE;
  let made = 0;
  const settings = { type: "kafka" as const, brokers: [server.bootstrap] };
  let current = await openKafkaSink({ ...settings, topic }, PLACE);
  return {
    server,
    sink: {
      most: current.most,
      deliver: (facts, signal) => current.deliver(facts, signal),
      close: () => current.close(),
    },
    async empty() {
      topic = `${PLACE}-${++made}`;
      await server.createTopic(topic, 4);
      await current.close();
      current = await openKafkaSink({ ...settings, topic }, PLACE);
    },
    async count() {
      const partitions = Array.from({ length: 4 }, (_, partitionIndex) => ({ partitionIndex, timestamp: -1n }));
      const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] });
      return (found?.partitions ?? []).reduce((sum, { offset }) => sum + Number(offset), 0);
    },
    async bare() {
      const producer = new Producer({ ...reached, idempotent: true });
      return {
        async send(page) {
          const messages = page.map(({ key, headers, content }) => ({
            topic,
            key: Buffer.from(key),
            value: content,
            headers: new Map(Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)])),
          }));
          await producer.send({ messages });
        },
        close: () => producer.close(),
      };
    },
  };
}

let filled: Promise<void> | undefined;
const brokers = new Map<string, Promise<Broker>>();

async function pagesOf(world: World, most: number): Promise<Page[]> {
  const pages: Page[] = [];
  const collecting: Sink = {
    most,
    async deliver(facts) {
      pages.push(
        facts.map((told) => {
          const { attributes, data } = cloudEventOf(told);
          const { id = "", subject = "" } = attributes;
          return { id, key: subject, headers: { ...attributes }, content: Buffer.from(data) };
        }),
      );
      return [];
    },
    async close() {},
  };
  await feedFacts(world, collecting, FACTS);
  return pages;
}

const telling = (world: World, name: string, start: () => Promise<Broker>, subject: "bare" | "carillon"): Case => ({
  variant: name,
  subject,
  settings: "one tenant, half accepted and half sent, pages of the same size",
  async prepare() {
    filled ??= fillFacts(world, FACTS);
    await filled;
    const starting = brokers.get(name) ?? start();
    brokers.set(name, starting);
    const broker = await starting;
    await broker.empty();
    const pages = subject === "bare" ? await pagesOf(world, broker.sink.most) : [];
    const bare = await broker.bare();
    const act = async () => {
      if (subject === "carillon") return feedFacts(world, broker.sink, FACTS);
      for (const page of pages) await bare.send(page);
    };
    return {
      processes: { [name]: broker.server.pid() },
      async measure() {
        const [own, startedAt] = [process.cpuUsage(), performance.now()];
        await act();
        const seconds = (performance.now() - startedAt) / 1000;
        const { user, system } = process.cpuUsage(own);
        return { perSecond: FACTS / seconds, cpuMicrosPerFact: (user + system) / FACTS };
      },
      async finish() {
        await bare.close();
        await broker.sink.close();
        const found = await broker.count();
        if (found !== FACTS) throw new Error(`${found} facts are there of ${FACTS}`);
      },
    };
  },
});

const part = (name: string, start: () => Promise<Broker>): Part => ({
  title: `${FACTS.toLocaleString("en")} facts into ${name}`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: name, subject: "carillon", against: "bare", atLeast: 0.7 }],
  cases: (world) => [telling(world, name, start, "bare"), telling(world, name, start, "carillon")],
});

export const sinks: Scenario = {
  summary: "facts into RabbitMQ and Kafka, beside a bare client",
  parts: { rabbitmq: part("RabbitMQ", startRabbit), kafka: part("Kafka", startKafkaBroker) },
};
