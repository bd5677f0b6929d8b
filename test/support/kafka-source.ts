// A Kafka for a test file, and Carillons that read from it.

import assert from "node:assert/strict";
import { after } from "node:test";
import type { SettingsOfSource } from "#sources/settings.ts";
import { type Reached, type ToSend, type Writer, writerTo } from "./kafka-topic.ts";
import { acceptedBodies, request } from "./keeping.ts";
import { type Kafka, type KafkaOptions, NO_KAFKA, startKafka } from "./servers/kafka.ts";
import { type Service, startService } from "./service.ts";
import { until } from "./until.ts";

export type KafkaSettings = SettingsOfSource<"kafka">;
type KafkaUnderTest = Kafka & {
  writer: Writer;
  reached: Reached;
  settings(topic: string, more?: Partial<KafkaSettings>): KafkaSettings;
};

/** Long, for machines with every core busy. */
export const LONG_MS = 120_000;

/** Stopped after all tests of the file. `skip` where there is none. */
export async function kafkaUnderTest(
  options: KafkaOptions = {},
  security: Partial<KafkaSettings> & Partial<Reached> = {},
): Promise<{ kafka: KafkaUnderTest; skip: string | false }> {
  const server = await startKafka(options);
  if (!server) return { kafka: undefined as never, skip: NO_KAFKA };
  const reached = { bootstrapBrokers: [server.bootstrap], ...(security as Partial<Reached>) };
  const writer = writerTo(reached);
  after(async () => {
    await writer.close();
    await server.stop();
  });
  const settings = (topic: string, more: Partial<KafkaSettings> = {}): KafkaSettings => ({
    type: "kafka",
    brokers: [server.bootstrap],
    topic,
    tenant: "default",
    ...(security as Partial<KafkaSettings>),
    ...more,
  });
  return { kafka: { ...server, writer, reached, settings }, skip: false };
}

export type Sources = { [name: string]: KafkaSettings };

/** On a database of its own, or beside another on its. */
export const readingService = (sources: Sources, beside?: Service): Promise<Service> =>
  startService({ roles: ["api", "source"], sources, ...(beside && { databaseUrl: beside.databaseUrl }) });

export const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
export const message = (n: number, more: Partial<ToSend> = {}): ToSend => ({
  value: JSON.stringify(request(n)),
  ...more,
});

/** Spread over so many partitions. */
export const messages = (from: number, to: number, partitions = 1): ToSend[] =>
  numbers(from, to).map((n) => message(n, { partition: n % partitions }));

/** All numbers below `count`, each once, and in order where they were written to one partition. */
export async function assertAccepted({ db }: Pick<Service, "db">, count: number, partitions = 1): Promise<void> {
  const bodies = await until(async () => {
    const found = await acceptedBodies(db);
    return new Set(found).size >= count ? found : undefined;
  }, LONG_MS);
  const accepted = bodies.map((body) => Number(body.split(" ")[1]));
  for (const partition of numbers(0, partitions)) {
    assert.deepEqual(
      accepted.filter((n) => n % partitions === partition),
      numbers(0, count).filter((n) => n % partitions === partition),
      `partition ${partition}: each once and in order`,
    );
  }
}

export const untilSome = ({ db }: Pick<Service, "db">, least: number) =>
  until(async () => ((await acceptedBodies(db)).length >= least ? true : undefined), LONG_MS);
