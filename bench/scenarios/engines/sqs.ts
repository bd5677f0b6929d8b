// What waits in SQS as a message each, delivered by a worker, beside a client that does nothing but receive and delete as many.

import { migrate } from "../../../src/store/connection/migrate.ts";
import { at } from "../../../src/wire/json-answer.ts";
import type { Sqs } from "../../../src/wire/sqs.ts";
import { carillonAdapter, clearCarillon } from "../../adapters/carillon.ts";
import { drain } from "../../drain.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { choose, startSqs } from "./subjects.ts";

const JOBS = 3_000;
/** As many receive at once as ours do where there is much. */
const ABREAST = 4;
const MOST_MESSAGES = 10;

const queueOf = async (sqs: Sqs, lane: string) =>
  String(at(await sqs.ask("GetQueueUrl", { QueueName: `bench-${lane}` }), "QueueUrl"));

async function waiting(sqs: Sqs, queue: string): Promise<number> {
  const asked = { QueueUrl: queue, AttributeNames: ["ApproximateNumberOfMessages"] };
  return Number(at(await sqs.ask("GetQueueAttributes", asked), "Attributes", "ApproximateNumberOfMessages"));
}

const ours = (world: World): Case => ({
  variant: "a message each",
  subject: "carillon on SQS",
  settings: "defaults, all roles, full record; a commit for each",
  async prepare() {
    await clearCarillon(world.databaseUrl);
    await migrate(world.databaseUrl);
    await choose(world.databaseUrl, "sqs");
    const server = await startSqs();
    Object.assign(process.env, server.variables);
    const { open, remaining } = carillonAdapter(world.databaseUrl);
    const producer = await open();
    for (let n = 0; n < JOBS; n++) await producer.one(n, 0);
    await producer.close();
    const messages = await waiting(server.sqs, await queueOf(server.sqs, "normal"));
    await settleStore(world.databaseUrl);
    server.moveAway();
    const pool = await startWorkers("carillon", "throughput", world, 1);
    for (const name of Object.keys(server.variables)) delete process.env[name];
    return {
      processes: { ...pool.processes, sqs: server.pid },
      measure: async () => ({ perSecond: await drain(pool, JOBS, remaining), messages }),
      async finish() {
        await pool.stop();
        await server.stop();
        await clearCarillon(world.databaseUrl);
      },
    };
  },
});

/** Receives ten and deletes ten without waiting for that, until there is nothing. */
async function empty(sqs: Sqs, queue: string, left: { messages: number }): Promise<void> {
  const deletions: Promise<unknown>[] = [];
  while (left.messages > 0) {
    const answer = await sqs.ask("ReceiveMessage", { QueueUrl: queue, MaxNumberOfMessages: MOST_MESSAGES });
    const messages = (at(answer, "Messages") ?? []) as { ReceiptHandle: string }[];
    if (messages.length === 0) continue;
    left.messages -= messages.length;
    const Entries = messages.map(({ ReceiptHandle }, n) => ({ Id: String(n), ReceiptHandle }));
    deletions.push(sqs.ask("DeleteMessageBatch", { QueueUrl: queue, Entries }));
  }
  await Promise.all(deletions);
}

const bare: Case = {
  variant: "a message each",
  subject: "the bare client",
  settings: `receives and deletes, ${ABREAST} receive at once; no database`,
  async prepare() {
    const { sqs, pid, moveAway, stop } = await startSqs();
    const queue = await queueOf(sqs, "normal");
    for (let n = 0; n < JOBS; n += MOST_MESSAGES) {
      const Entries = Array.from({ length: MOST_MESSAGES }, (_, k) => ({
        Id: String(k),
        MessageBody: `2\n${n + k} 0 1 3 ${n + k}`,
      }));
      await sqs.ask("SendMessageBatch", { QueueUrl: queue, Entries });
    }
    moveAway();
    return {
      processes: { sqs: pid },
      async measure() {
        const left = { messages: JOBS };
        const startedAt = performance.now();
        await Promise.all(Array.from({ length: ABREAST }, () => empty(sqs, queue, left)));
        return { perSecond: JOBS / ((performance.now() - startedAt) / 1000), messages: JOBS };
      },
      finish: stop,
    };
  },
};

export const sqs: Part = {
  title: `Drain of ${JOBS.toLocaleString("en")} that wait in SQS as a message each, one process`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "a message each", subject: "carillon on SQS", against: "the bare client", atLeast: 0.8 }],
  cases: (world) => [ours(world), bare],
};
