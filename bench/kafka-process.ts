// One reader of a topic: the bare client, the bare client with the library's batch accept beside it, or Carillon's source. Waits for "go", reports how
// long it took, and what that cost this process.

import { Consumer, MessagesStreamModes } from "@platformatic/kafka";
import pg from "pg";
import { readConfig } from "../src/config/read.ts";
import { createCarillon } from "../src/index.ts";
import { start } from "../src/main.ts";
import { createLog } from "../src/telemetry/log.ts";
import { machineNow, notification } from "./payload.ts";

export type Reading = {
  /** `accept`: with requests that are there already; `parse`: with those of the messages. */
  how: "bare" | "accept" | "parse" | "source";
  brokers: string[];
  topic: string;
  messages: number;
  databaseUrl: string;
};
export type Mark = { count: number; at: number; cpuSeconds: number };
/** When a tenth of them was done, and when all were. */
export type Marks = { first: Mark; last: Mark };

const BATCH = 1_000;
/** As many commits as the library has under way by default. */
const WIDTH = 2;
const LOOK_MS = 50;

const reading: Reading = JSON.parse(process.argv[2] as string);
const { brokers, topic, messages, databaseUrl } = reading;
let count = 0;
let first: Mark | undefined;

function counted(now: number): void {
  count = now;
  const { user, system } = process.cpuUsage();
  const mark = { count, at: machineNow(), cpuSeconds: (user + system) / 1e6 };
  if (count >= messages / 10) first ??= mark;
  if (first && count >= messages) process.send?.({ first, last: mark } satisfies Marks);
}

async function bare(onBatch: (values: Buffer[]) => Promise<void> | void): Promise<void> {
  const groupId = `bench-${crypto.randomUUID()}`;
  const consumer = new Consumer({ clientId: "bench", bootstrapBrokers: brokers, groupId, autocommit: false });
  const stream = await consumer.consume({ topics: [topic], mode: MessagesStreamModes.EARLIEST });
  let values: Buffer[] = [];
  for await (const message of stream) {
    if (values.push(message.value) < BATCH) continue;
    await onBatch(values);
    values = [];
    // As whoever wants to go on after a restart does.
    message.commit()?.catch(() => undefined);
  }
}

const onlyCount = () => counted(count + BATCH);

async function createAccepting(): Promise<(values: Buffer[]) => Promise<void>> {
  const carillon = createCarillon({ databaseUrl });
  const requests = Array.from({ length: BATCH }, (_, n) => notification(n));
  await carillon.sendBatch(requests.slice(0, 1));
  const underWay = new Set<Promise<void>>();
  return async (values) => {
    const given = reading.how === "accept" ? requests : values.map((value) => JSON.parse(value.toString()));
    const one = carillon.sendBatch(given).then(() => {
      counted(count + BATCH);
      underWay.delete(one);
    });
    underWay.add(one);
    if (underWay.size >= WIDTH) await Promise.race(underWay);
  };
}

async function source(): Promise<void> {
  const env = { DATABASE_URL: databaseUrl, PORT: "0", CARILLON_API_KEY: "benchmark", CARILLON_ROLES: "source" };
  const sources = { bench: { type: "kafka" as const, brokers, topic, tenant: "default", group: crypto.randomUUID() } };
  const config = await readConfig({ env, cwd: "/" });
  await start({ ...config, sources }, createLog("error"), () => {});
  const db = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const look = "select coalesce(sum(next), 0)::int as count from carillon.source_offsets";
  while (count < messages) {
    counted((await db.query(look)).rows[0].count);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const isAccepting = reading.how === "accept" || reading.how === "parse";
const accepting = isAccepting ? await createAccepting() : undefined;
process.on("message", () => {
  if (reading.how === "source") source();
  else bare(accepting ?? onlyCount);
});
process.send?.("ready");
