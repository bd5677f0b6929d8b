// Facts to Kafka: an idempotent producer, confirmed by all replicas that are in step.
//
// The key is the notification, so that its facts stand in one partition, in order. One request at a time: what it does not know the end of
// is not followed by another. Every fault ends the producer with all that is not written yet, and the next delivery makes a new one.

import type { MessageToProduce, Producer } from "@platformatic/kafka";
import { clientOptions, cut, hearErrors, type KafkaPackage, loadKafka } from "#wire/kafka-client.ts";
import { CONTENT_TYPE, cloudEventOf } from "./cloud-event.ts";
import { partitionOf } from "./kafka-partition.ts";
import type { SettingsOfSink } from "./settings.ts";
import type { OpenSink, Refused, Sink, Told } from "./sink.ts";

const MOST = 3000;
/** Of a request. A broker takes 1 MiB for a partition unless it is told otherwise, and all may be for one. */
const REQUEST_BYTES = 800_000;
/** Of a record besides its headers and its value, at most. */
const RECORD_BYTES = 100;
/** Before it is told as a failure: a leader that moves is found again within these. */
const RETRIES = 4;
const RETRY_MS = 250;

const TOO_LARGE = { ids: ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"] };
/** The client words it itself where it does not know the topic yet. */
const UNKNOWN_TOPIC = { ids: ["UNKNOWN_TOPIC_OR_PARTITION"], said: /^Unknown topic / };

type Message = MessageToProduce<Buffer, Buffer, Buffer, Buffer>;
type Produced = { told: Told; message: Message; bytes: number };

export const openKafkaSink: OpenSink<SettingsOfSink<"kafka">> = async (settings, name) =>
  new KafkaSink(await loadKafka(`the sink ${name}`), settings, `carillon-sink-${name}`);

class KafkaSink implements Sink {
  readonly most = MOST;
  readonly #kafka: KafkaPackage;
  readonly #settings: SettingsOfSink<"kafka">;
  readonly #name: string;
  #producer: Producer | undefined;

  constructor(kafka: KafkaPackage, settings: SettingsOfSink<"kafka">, name: string) {
    this.#kafka = kafka;
    this.#settings = settings;
    this.#name = name;
  }

  async deliver(facts: readonly Told[], signal: AbortSignal): Promise<readonly Refused[]> {
    const refused: Refused[] = [];
    for (const part of partsOf(facts.map((told) => this.#produced(told))))
      refused.push(...(await this.#send(part, signal)));
    return refused;
  }

  async close(): Promise<void> {
    const producer = this.#producer;
    this.#producer = undefined;
    if (producer) await cut(producer);
  }

  /** Where it is too much for the broker, in halves: what is too large by itself is refused alone. */
  async #send(part: readonly Produced[], signal: AbortSignal): Promise<Refused[]> {
    if (part.length === 0) return [];
    try {
      await this.#sendAll(
        part.map(({ message }) => message),
        signal,
      );
      return [];
    } catch (error) {
      const [first] = part;
      if (!this.#is(error, TOO_LARGE) || first === undefined) throw error;
      if (part.length === 1)
        return [
          {
            told: first.told,
            error: `it has about ${first.bytes} bytes, more than the topic ${this.#settings.topic} takes`,
          },
        ];
      const half = Math.ceil(part.length / 2);
      return [...(await this.#send(part.slice(0, half), signal)), ...(await this.#send(part.slice(half), signal))];
    }
  }

  async #sendAll(messages: Message[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const producer = this.#producer ?? this.#make();
    this.#producer = producer;
    let onAborted = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAborted = () => reject(signal.reason);
    });
    signal.addEventListener("abort", onAborted);
    try {
      await Promise.race([producer.send({ messages }), aborted]);
    } catch (error) {
      if (!this.#is(error, TOO_LARGE)) await this.close();
      throw this.#is(error, UNKNOWN_TOPIC) ? new Error(`Kafka has no topic ${this.#settings.topic}`) : error;
    } finally {
      signal.removeEventListener("abort", onAborted);
    }
  }

  #is(error: unknown, { ids, said }: { ids: readonly string[]; said?: RegExp }): boolean {
    if (!(error instanceof Error)) return false;
    return ids.some((id) => this.#kafka.findErrorBy(error, "apiId", id) !== null) || said?.test(error.message) === true;
  }

  #make(): Producer {
    const { Producer } = this.#kafka;
    const producer = new Producer({
      ...clientOptions(this.#settings, this.#name),
      idempotent: true,
      retries: RETRIES,
      retryDelay: RETRY_MS,
    });
    hearErrors(producer);
    return producer;
  }

  #produced(told: Told): Produced {
    const { attributes, data } = cloudEventOf(told);
    const key = Buffer.from(told.fact.notificationId);
    const headers = new Map<Buffer, Buffer>([CONTENT_TYPE_HEADER]);
    let bytes = RECORD_BYTES;
    for (const name in attributes) {
      const value = attributes[name] as string;
      // The key is the subject, and most of the others say the same of all.
      headers.set(named(name), name === "subject" ? key : SAME.has(name) ? known(value) : Buffer.from(value));
      bytes += name.length + value.length + 8;
    }
    const value = Buffer.from(data);
    const message = { topic: this.#settings.topic, key, value, headers, partition: partitionOf(key) };
    return { told, message, bytes: bytes + value.length };
  }
}

const CONTENT_TYPE_HEADER = [Buffer.from("content-type"), Buffer.from(CONTENT_TYPE)] as const;
const SAME: ReadonlySet<string> = new Set(["specversion", "source", "type", "tenant"]);
/** There may be tenants without number. */
const MOST_KNOWN = 10_000;
const KNOWN = new Map<string, Buffer>();
const NAMES = new Map<string, Buffer>();

function named(name: string): Buffer {
  const written = NAMES.get(name) ?? Buffer.from(`ce_${name}`);
  NAMES.set(name, written);
  return written;
}

function known(value: string): Buffer {
  let written = KNOWN.get(value);
  if (!written) {
    if (KNOWN.size === MOST_KNOWN) KNOWN.clear();
    written = Buffer.from(value);
    KNOWN.set(value, written);
  }
  return written;
}

/** In order, each of no more than a request may have; what has more by itself stands alone. */
function partsOf(all: readonly Produced[]): Produced[][] {
  const parts: Produced[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const one of all) {
    bytes += one.bytes;
    if (bytes > REQUEST_BYTES) {
      parts.push([]);
      bytes = one.bytes;
    }
    parts.at(-1)?.push(one);
  }
  return parts;
}
