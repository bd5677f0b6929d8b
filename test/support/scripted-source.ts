// A source without a broker: topics in memory, read as the contract wants it.

import { setTimeout as sleep } from "node:timers/promises";
import type { Keep, Keeping, Message, RunningSource } from "#sources/source.ts";
import { messageOf } from "./keeping.ts";

export type ScriptedTopic = {
  topic: string;
  write(partition: number, values: readonly string[]): Promise<void>;
  open(keeping: Keeping): Promise<RunningSource>;
};

const MOST = 7;
const POLL_MS = 5;

export function scriptedTopic(topic: string, partitions: number): ScriptedTopic {
  const written: Message[][] = Array.from({ length: partitions }, () => []);
  return {
    topic,
    async write(partition, values) {
      const messages = written[partition] as Message[];
      for (const value of values) messages.push(messageOf(messages.length, { value }));
    },
    async open(keeping) {
      const stopping = new AbortController();
      const kept = new Map(await keeping.offsets(topic));
      const lanes = written.map((messages, partition) =>
        runLane({ topic, partition, messages, kept, keeping, signal: stopping.signal }),
      );
      return {
        lag: () => written.reduce((sum, messages, partition) => sum + messages.length - (kept.get(partition) ?? 0), 0),
        async stop() {
          stopping.abort();
          await Promise.all(lanes);
        },
      };
    },
  };
}

type Lane = {
  topic: string;
  partition: number;
  messages: readonly Message[];
  kept: Map<number, number>;
  keeping: Keeping;
  signal: AbortSignal;
};

async function runLane({ topic, partition, messages, kept, keeping, signal }: Lane): Promise<void> {
  while (!signal.aborted) {
    const from = kept.get(partition) ?? 0;
    const some = messages.slice(from, from + MOST);
    const next = from + some.length;
    try {
      if (some.length === 0) await sleep(POLL_MS);
      const keep: Keep | undefined =
        some.length === 0 ? undefined : await keeping.read({ topic, partition, from, next, messages: some });
      if (!keep || signal.aborted) continue;
      const answer = await keep();
      kept.set(partition, answer.kind === "moved" ? next : answer.next);
    } catch (error) {
      keeping.failed(error);
      await sleep(POLL_MS);
    }
  }
}
