// How fast a Kafka source accepts, beside the bare client that only reads, and beside an application that reads with it and hands batches to the library.

import { fileURLToPath } from "node:url";
import { Producer } from "@platformatic/kafka";
import { createCarillon } from "../../src/index.ts";
import { type Kafka, NO_KAFKA, startKafka } from "../../test/support/servers/kafka.ts";
import { clearCarillon } from "../adapters/carillon.ts";
import { secondsOf } from "../cpu.ts";
import type { Marks, Reading } from "../kafka-process.ts";
import { notification } from "../payload.ts";
import { onCleanUp, startProgram, whenReady } from "../program.ts";
import type { Case, Part, Scenario, World } from "../scenario.ts";
import { count, settleStore } from "../sql.ts";

const MESSAGES = 100_000;
const PARTITIONS = [1, 4];
const SUBJECTS = {
  bare: "bare client, reads only",
  accept: "bare client and the library",
  parse: "the same, with what it read",
  source: "source",
} as const;
const variantOf = (partitions: number) => (partitions === 1 ? "1 partition" : `${partitions} partitions`);
const topicOf = (partitions: number) => `requests-${partitions}`;

let starting: Promise<Kafka> | undefined;

/** One for all cases, running throughout, with the topics filled. */
async function startFilled(): Promise<Kafka> {
  const kafka = await startKafka({ settings: { "num.io.threads": 2, "group.initial.rebalance.delay.ms": 0 } });
  if (!kafka) throw new Error(NO_KAFKA);
  onCleanUp(kafka.stop);
  const producer = new Producer({ clientId: "bench", bootstrapBrokers: [kafka.bootstrap], acks: -1 });
  for (const partitions of PARTITIONS) {
    const topic = topicOf(partitions);
    await kafka.createTopic(topic, partitions);
    for (let from = 0; from < MESSAGES; from += 1_000) {
      const messages = Array.from({ length: 1_000 }, (_, n) => ({
        topic,
        partition: n % partitions,
        value: Buffer.from(JSON.stringify(notification(from + n))),
      }));
      await producer.send({ messages });
    }
  }
  await producer.close();
  return kafka;
}

/** Per second and processor time for a message, from a tenth of them on; of PostgreSQL, over all. */
const figuresOf = ({ first, last }: Marks, postgresSeconds: number) => {
  const done = last.count - first.count;
  return {
    perSecond: (done / (last.at - first.at)) * 1000,
    readerUs: ((last.cpuSeconds - first.cpuSeconds) / done) * 1e6,
    postgresUs: (postgresSeconds / MESSAGES) * 1e6,
  };
};

const reading = (world: World, how: keyof typeof SUBJECTS, partitions: number): Case => ({
  variant: variantOf(partitions),
  subject: SUBJECTS[how],
  settings: `${MESSAGES.toLocaleString("en")} messages of 300 bytes, defaults`,
  async prepare() {
    starting ??= startFilled();
    const kafka = await starting;
    const { databaseUrl } = world;
    await clearCarillon(databaseUrl);
    const carillon = createCarillon({ databaseUrl });
    await carillon.send(notification(0));
    await carillon.close();
    await settleStore(databaseUrl);
    const told: Reading = {
      how,
      brokers: [kafka.bootstrap],
      topic: topicOf(partitions),
      messages: MESSAGES,
      databaseUrl,
    };
    const script = fileURLToPath(new URL("../kafka-process.ts", import.meta.url));
    const program = await startProgram(process.execPath, [script, JSON.stringify(told)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    await whenReady(program, "the reader", new Promise((resolve) => program.child.once("message", resolve)));
    return {
      processes: { reader: program.pid, kafka: kafka.pid() },
      async measure() {
        const { postgres } = world.servers;
        const used = () => (postgres === undefined ? 0 : secondsOf([postgres]));
        const before = used();
        program.child.send("go");
        const marks = await new Promise<Marks>((resolve) =>
          program.child.once("message", (said) => resolve(said as Marks)),
        );
        return figuresOf(marks, used() - before);
      },
      async finish() {
        await program.stop();
        if (how !== "bare") {
          const accepted = await count(databaseUrl, "carillon.notifications");
          if (accepted < MESSAGES) throw new Error(`${accepted} of ${MESSAGES} are there`);
        }
        await clearCarillon(databaseUrl);
      },
    };
  },
});

const part: Part = {
  title: `Requests from Kafka, ${MESSAGES.toLocaleString("en")} messages; the broker runs in all cases`,
  figure: { name: "perSecond", unit: "/s" },
  // The lesser of the two others: whoever reads and accepts is never faster than whoever only reads.
  targets: PARTITIONS.map((partitions) => ({
    variant: variantOf(partitions),
    subject: SUBJECTS.source,
    against: SUBJECTS.accept,
    atLeast: 0.8,
  })),
  cases: (world) =>
    PARTITIONS.flatMap((partitions) =>
      (["bare", "accept", "parse", "source"] as const).map((how) => reading(world, how, partitions)),
    ),
};

export const kafkaSource: Scenario = {
  summary: "accept the requests of a Kafka topic, beside the bare client and beside the library",
  parts: { read: part },
};
