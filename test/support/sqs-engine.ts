// An engine on a server that speaks like SQS, whose takers wait until what was offered has come.

import { PRIORITIES } from "#domain/priority.ts";
import { createSqsEngine, type SqsEngine, type SqsEngineOptions } from "#queue/sqs/engine.ts";
import { createQueues, type Queues } from "#queue/sqs/queues.ts";
import { at } from "#wire/json-answer.ts";
import { openSqs, type Sqs } from "#wire/sqs.ts";
import { SQS_KEYS } from "./servers/sqs.ts";
import { until } from "./until.ts";

export const REGION = "us-east-1";
const monotonic = () => performance.now();

export type OpenedSqs = {
  sqs: Sqs;
  queues: Queues;
  /** Messages that may be received, and those that somebody has. */
  counts(rank: number): Promise<{ visible: number; held: number }>;
  close(): Promise<void>;
};

export function openQueues(endpoint: string, prefix: string): OpenedSqs {
  const sqs = openSqs({ endpoint, region: REGION, credentials: SQS_KEYS });
  const queues = createQueues(sqs, prefix, {
    watch: { away: () => {}, back: () => {} },
    monotonic,
    random: Math.random,
  });
  const NAMES = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
  return {
    sqs,
    queues,
    async counts(rank) {
      const answer = await queues.ask(rank, "GetQueueAttributes", { AttributeNames: NAMES });
      const [visible = 0, held = 0] = NAMES.map((name) => Number(at(answer, "Attributes", name)));
      return { visible, held };
    },
    close: () => sqs.close(),
  };
}

export const emptyQueues = async ({ queues }: OpenedSqs): Promise<void> => {
  for (const rank of PRIORITIES.keys()) await queues.ask(rank, "PurgeQueue", {});
};

export function createEngine(opened: OpenedSqs, more: Omit<SqsEngineOptions, "queues" | "monotonic">): SqsEngine {
  return createSqsEngine({ queues: opened.queues, monotonic, ...more });
}

/** Whoever takes from it gets what was offered before, as long as he is the only one. */
export function waitingFor(engine: SqsEngine, { counts }: OpenedSqs): SqsEngine {
  const hasCome = async (ranks: readonly number[], count: number) => {
    if (ranks.reduce((sum, rank) => sum + engine.standing(rank).waiting, 0) >= count) return true;
    for (const rank of ranks) {
      const { visible, held } = await counts(rank);
      if (visible > 0 || held !== engine.standing(rank).held) return undefined;
    }
    return true;
  };
  return {
    ...engine,
    async take(ask) {
      // It is asked for because somebody wants it.
      const { entries, done } = await engine.take(ask);
      done(entries, []);
      await until(() => hasCome(ask.ranks, ask.count));
      return engine.take(ask);
    },
  };
}
