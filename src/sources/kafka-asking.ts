// What a session asks the brokers for.

import type { Consumer } from "@platformatic/kafka";
import { cut } from "#wire/kafka-client.ts";
import type { SettingsOfSource } from "./settings.ts";
import type { Keeping } from "./source.ts";

export type Consuming = Consumer<Buffer, Buffer, Buffer, Buffer>;
export type FetchOptions = Parameters<Consuming["fetch"]>[0];
export type FetchResponse = Awaited<ReturnType<Consuming["fetch"]>>;
type Start = { partition: number; from: number };

export const OUT_OF_RANGE = 1;
const FIRST = -2n;
const END = -1n;
/** Only what was committed, where it came in transactions. */
const READ_COMMITTED = 1;
const GOODBYE_MS = 3_000;

export async function topicOf(consumer: Consuming, name: string) {
  const { topics } = await consumer.metadata({ topics: [name] });
  const topic = topics.get(name);
  if (!topic) throw new Error(`there is no topic ${name}`);
  return topic;
}

/** By partition: the offset of the first message that there is, or the one after the last. */
async function edgesOf(consumer: Consuming, topic: string, partitions: readonly number[], timestamp: bigint) {
  if (partitions.length === 0) return [];
  const options = { topics: [topic], partitions: { [topic]: [...partitions] }, timestamp };
  return Array.from((await consumer.listOffsets(options)).get(topic) ?? [], Number);
}

/** Where partitions go on: where they were kept, and otherwise where the settings say. */
export async function startsOf(
  consumer: Consuming,
  { topic, from = "earliest" }: Pick<SettingsOfSource<"kafka">, "topic" | "from">,
  keeping: Keeping,
  partitions: readonly number[],
): Promise<Start[]> {
  const kept = await keeping.offsets(topic);
  const unknown = partitions.filter((partition) => !kept.has(partition));
  // A partition that is new beside others is read from its first message, or what came before we saw it would be left out.
  const isLatest = from === "latest" && kept.size === 0;
  const edges = await edgesOf(consumer, topic, unknown, isLatest ? END : FIRST);
  const starts = partitions.map((partition) => ({
    partition,
    from: kept.get(partition) ?? (edges[partition] as number),
  }));
  if (isLatest) for (const { partition, from: at } of starts) await pin(keeping, topic, partition, at);
  return starts;
}

/** Remembers where it began: what comes before the first message is kept would be left out after a restart otherwise. */
async function pin(keeping: Keeping, topic: string, partition: number, at: number): Promise<void> {
  const keep = await keeping.read({ topic, partition, from: at, next: at, messages: [] });
  await keep();
}

/** A fetch fails as a whole where one partition has nothing at the place that was asked for; the others' messages are in it all the same. */
export async function fetchOnce(consumer: Consuming, options: FetchOptions): Promise<FetchResponse> {
  try {
    return await consumer.fetch({ ...options, isolationLevel: READ_COMMITTED });
  } catch (error) {
    const response = error instanceof Error && "response" in error ? (error.response as FetchResponse) : undefined;
    const codes =
      response?.responses.flatMap((topic) => topic.partitions.map((partition) => partition.errorCode)) ?? [];
    const isThatAlone = codes.includes(OUT_OF_RANGE) && codes.every((code) => code === 0 || code === OUT_OF_RANGE);
    if (response?.errorCode !== 0 || !isThatAlone) throw error;
    return response;
  }
}

/** The first that there is, where what comes next is not: Kafka has dropped it. Throws where this is not the topic that was read before. */
export async function firstOf(
  consumer: Consuming,
  topic: string,
  { partition, position }: { partition: number; position: number },
  keeping: Pick<Keeping, "missed">,
): Promise<number> {
  const first = (await edgesOf(consumer, topic, [partition], FIRST))[partition] as number;
  const end = (await edgesOf(consumer, topic, [partition], END))[partition] as number;
  if (position > end) {
    const said = `${topic}/${partition} ends at ${end}, but ${position} was kept as the next: it is not the topic that was read before`;
    throw new Error(`${said} (docs/sources.md says what to do)`);
  }
  if (position < first) keeping.missed(`${topic}/${partition}: Kafka no longer had ${position} to ${first - 1}`);
  return Math.max(first, position);
}

/** Says goodbye where that is possible; otherwise the group will miss it. */
export async function leave(consumer: Consuming): Promise<void> {
  // First the group: one that is no member any more would go on with its heartbeats for ever when it is closed.
  const left = new Promise<void>((resolve) => consumer.leaveGroup(true, () => resolve()));
  const gone = left
    .then(() => consumer.close(true))
    .then(
      () => true,
      () => false,
    );
  const late = new Promise<false>((resolve) => {
    setTimeout(resolve, GOODBYE_MS, false).unref();
  });
  if (!(await Promise.race([gone, late]))) await cut(consumer);
}
