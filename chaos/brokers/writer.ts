// An application that writes requests to topics, some of them poison, and never writes again what it is not sure of.
//
// What was written is what the topics have at the end; what the writer was told only shows whether Kafka kept its word.

import { setTimeout as sleep } from "node:timers/promises";
import { Producer } from "@platformatic/kafka";
import { PRIORITIES } from "#domain/priority.ts";
import { cut, hearErrors } from "#wire/kafka-client.ts";
import type { Kind, Sent } from "./history.ts";

export type WriterOptions = {
  bootstrap: string;
  topics: readonly string[];
  partitions: number;
  random: () => number;
  perSecond: number;
};

type Message = { key: string; partition: number; value: string | null; idempotencyKey?: string };

export type RunningWriter = { sent: Sent[]; stop(): Promise<void> };

const ROUND_MS = 100;
/** A message is longer than what is taken. */
const TOO_LONG = 270_000;
/** Waits of a retry, so that a run comes to an end. */
const MOST_BACKOFF_MS = 300;

export function startWriter({ bootstrap, topics, partitions, random, perSecond }: WriterOptions): RunningWriter {
  const sent: Sent[] = [];
  const repeatable: Message[] = [];
  let isStopped = false;
  let n = 0;
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;

  function make(): Message {
    const partition = Math.floor(random() * partitions);
    const kind = kindBy(random());
    const again = kind === "same" && random() < 0.7 ? pick(repeatable) : undefined;
    if (again) return { ...again, partition };
    const key = `${kind} ${++n}`;
    const message = { key, partition, value: contentOf(kind, key, random) };
    if (kind !== "same") return message;
    const keyed = { ...message, idempotencyKey: key };
    repeatable.push(keyed);
    return keyed;
  }

  async function write(producer: Producer): Promise<void> {
    const topic = pick(topics);
    const messages = Array.from({ length: Math.max(1, Math.round((perSecond * ROUND_MS) / 1000)) }, make);
    const told: Sent[] = messages.map(({ key }) => ({ key, isConfirmed: false }));
    sent.push(...told);
    await producer.send({ messages: messages.map((message) => recordOf(topic, message)) });
    for (const one of told) one.isConfirmed = true;
  }

  const running = (async () => {
    while (!isStopped) {
      const producer = open(bootstrap);
      try {
        for (; !isStopped; await sleep(ROUND_MS)) await write(producer);
      } catch {
        // Kafka is away, or the connection was cut: whether they are there the topic will say.
        await sleep(ROUND_MS);
      } finally {
        await cut(producer);
      }
    }
  })();
  return {
    sent,
    async stop() {
      isStopped = true;
      await running;
    },
  };
}

function open(bootstrap: string): Producer {
  const producer = new Producer({
    clientId: "writer",
    bootstrapBrokers: [bootstrap],
    idempotent: true,
    acks: -1,
    retries: 3,
    retryDelay: 200,
    connectTimeout: 3_000,
    requestTimeout: 5_000,
  });
  hearErrors(producer);
  return producer;
}

const recordOf = (topic: string, { key, partition, value, idempotencyKey }: Message) => ({
  topic,
  partition,
  key: Buffer.from(key),
  ...(value !== null && { value: Buffer.from(value) }),
  ...(idempotencyKey !== undefined && {
    headers: new Map([[Buffer.from("idempotency-key"), Buffer.from(idempotencyKey)]]),
  }),
});

function kindBy(chance: number): Kind {
  if (chance < 0.05) return "poison";
  if (chance < 0.13) return "same";
  return chance < 0.15 ? "empty" : "good";
}

function contentOf(kind: Kind, key: string, random: () => number): string | null {
  if (kind === "empty") return null;
  if (kind === "poison") return poison(key, random());
  return JSON.stringify({
    channel: "email",
    recipient: { email: "ada@example.com" },
    content: { subject: key, textBody: "Hello" },
    priority: PRIORITIES[Math.floor(random() * PRIORITIES.length)],
    retryPolicy: { maxAttempts: 3, backoffMultiplier: 1, maxBackoffMs: MOST_BACKOFF_MS },
    metadata: { key },
  });
}

function poison(key: string, chance: number): string {
  if (chance < 0.4) return `${key} is no JSON`;
  if (chance < 0.5) return JSON.stringify({ metadata: { key }, content: "x".repeat(TOO_LONG) });
  return JSON.stringify({ channel: "pigeon", metadata: { key } });
}
