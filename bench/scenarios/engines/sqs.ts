// What waits in SQS as a message each, delivered by a worker, beside a client that does nothing but receive and delete as many.

import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { PRIORITIES } from "../../../src/domain/priority.ts";
import { migrate } from "../../../src/store/connection/migrate.ts";
import { at } from "../../../src/wire/json-answer.ts";
import { openSqs, type Sqs } from "../../../src/wire/sqs.ts";
import { carillonAdapter, clearCarillon } from "../../adapters/carillon.ts";
import { drain } from "../../drain.ts";
import { startProgram } from "../../program.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { runSql, settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";

const JOBS = 3_000;
const SERVER = fileURLToPath(new URL("../../sqs-server.ts", import.meta.url));
const REGION = "us-east-1";
const KEYS = { accessKeyId: "bench", secretAccessKey: "a-word-for-benchmarks" };
/** As many receive at once as ours do where there is much. */
const ABREAST = 4;
const MOST_MESSAGES = 10;
/** As SQS is within a region. */
const AWAY_MS = 10;

async function startServer() {
  const server = await startProgram(process.execPath, [SERVER], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const [{ port }] = (await once(server.child, "message")) as [{ port: number }];
  const endpoint = `http://127.0.0.1:${port}`;
  const variables = {
    CARILLON_SQS_ENDPOINT: endpoint,
    CARILLON_SQS_PREFIX: "bench",
    CARILLON_SQS_ACCESS_KEY_ID: KEYS.accessKeyId,
    CARILLON_SQS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  };
  return { server, endpoint, variables };
}

const queueOf = async (sqs: Sqs, lane: string) =>
  String(at(await sqs.ask("GetQueueUrl", { QueueName: `bench-${lane}` }), "QueueUrl"));

/** Each a commit of its own, by a library that can reach SQS. */
async function fill(world: World, variables: { [name: string]: string }): Promise<void> {
  await migrate(world.databaseUrl);
  await runSql(world.databaseUrl, "select carillon.queue_choose('sqs')");
  Object.assign(process.env, variables);
  const producer = await carillonAdapter(world.databaseUrl).open();
  for (let n = 0; n < JOBS; n++) await producer.one(n, 0);
  await producer.close();
  for (const name of Object.keys(variables)) delete process.env[name];
}

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
    const { server, endpoint, variables } = await startServer();
    const sqs = openSqs({ endpoint, region: REGION, credentials: { kind: "keys", keys: KEYS } });
    // Made by who starts first.
    for (const lane of PRIORITIES) await sqs.ask("CreateQueue", { QueueName: `bench-${lane}` });
    await fill(world, variables);
    const queue = await queueOf(sqs, "normal");
    const messages = await waiting(sqs, queue);
    await settleStore(world.databaseUrl);
    server.child.send(AWAY_MS);
    Object.assign(process.env, variables);
    const pool = await startWorkers("carillon", "throughput", world, 1);
    for (const name of Object.keys(variables)) delete process.env[name];
    const { remaining } = carillonAdapter(world.databaseUrl);
    return {
      processes: { ...pool.processes, sqs: server.pid },
      measure: async () => ({ perSecond: await drain(pool, JOBS, remaining), messages }),
      async finish() {
        await pool.stop();
        await sqs.close();
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
    const { server, endpoint } = await startServer();
    const sqs = openSqs({ endpoint, region: REGION, credentials: { kind: "keys", keys: KEYS } });
    await sqs.ask("CreateQueue", { QueueName: "bench-normal" });
    const queue = await queueOf(sqs, "normal");
    for (let n = 0; n < JOBS; n += MOST_MESSAGES) {
      const Entries = Array.from({ length: MOST_MESSAGES }, (_, k) => ({
        Id: String(k),
        MessageBody: `2\n${n + k} 0 1 3 ${n + k}`,
      }));
      await sqs.ask("SendMessageBatch", { QueueUrl: queue, Entries });
    }
    server.child.send(AWAY_MS);
    return {
      processes: { sqs: server.pid },
      async measure() {
        const left = { messages: JOBS };
        const startedAt = performance.now();
        await Promise.all(Array.from({ length: ABREAST }, () => empty(sqs, queue, left)));
        return { perSecond: JOBS / ((performance.now() - startedAt) / 1000), messages: JOBS };
      },
      async finish() {
        await sqs.close();
        await server.stop();
      },
    };
  },
};

export const sqs: Part = {
  title: `Drain of ${JOBS.toLocaleString("en")} that wait in SQS as a message each, one process`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "a message each", subject: "carillon on SQS", against: "the bare client", atLeast: 0.8 }],
  cases: (world) => [ours(world), bare],
};
