// Each engine beside BullMQ on the same Redis: handing over, waiting for a worker, and what a backlog does to the rate.

import { drain, fill } from "../../drain.ts";
import { inFlight } from "../../in-flight.ts";
import type { Case, Figures, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { checkStored } from "../accept/peers.ts";
import { measureIdle } from "../latency.ts";
import { type Started, type Subject, subjectsIn } from "./subjects.ts";

const CALLS = 20_000;
const WARM_UP = 500;
const WIDTH = 200;
const BATCH = 1_000;
const BATCHES = 50;
const WARM_UP_BATCHES = 2;
const BATCHES_ABREAST = 2;
const WINDOW = 50_000;
const BACKLOG = 500_000;

type Way = { warmUp(): Promise<unknown>; measure(): Promise<Figures>; sent: number };

async function caseOver(
  world: World,
  { adapter, processes, stop }: Started,
  wayOf: (producer: Awaited<ReturnType<typeof adapter.open>>) => Way,
) {
  const producer = await adapter.open();
  const way = wayOf(producer);
  await way.warmUp();
  await settleStore(world.databaseUrl);
  return {
    processes,
    measure: way.measure,
    async finish() {
      await producer.close();
      await checkStored(adapter, way.sent);
      await stop();
    },
  };
}

const singly = (world: World, { name, settings, start }: Subject): Case => ({
  variant: `${WIDTH} in flight`,
  subject: name,
  settings,
  prepare: async () =>
    caseOver(world, await start(), (producer) => ({
      warmUp: () => inFlight(WARM_UP, WIDTH, (i) => producer.one(i)),
      measure: async () => ({ perSecond: await inFlight(CALLS, WIDTH, (i) => producer.one(WARM_UP + i)) }),
      sent: WARM_UP + CALLS,
    })),
});

const inBatches = (world: World, { name, settings, start }: Subject): Case => ({
  variant: `batches of ${BATCH.toLocaleString("en")}`,
  subject: name,
  settings,
  prepare: async () =>
    caseOver(world, await start(), (producer) => {
      const calls = Array.from({ length: WARM_UP_BATCHES + BATCHES }, (_, k) => producer.batch(k * BATCH, BATCH));
      const warmUp = calls.splice(0, WARM_UP_BATCHES);
      const made = (those: typeof calls) => inFlight(those.length, BATCHES_ABREAST, async (k) => those[k]?.());
      return {
        warmUp: () => made(warmUp),
        measure: async () => ({ perSecond: BATCH * (await made(calls)) }),
        sent: (WARM_UP_BATCHES + BATCHES) * BATCH,
      };
    }),
});

export const accepted: Part = {
  title: `Handing over to each engine: ${CALLS.toLocaleString("en")} one by one, ${(BATCH * BATCHES).toLocaleString("en")} in batches`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [],
  cases: (world) => {
    const subjects = subjectsIn(world, ["postgres", "redis", "sqs"]);
    return [singly, inBatches].flatMap((way) => subjects.map((subject) => way(world, subject)));
  },
};

export const idle: Part = {
  title: "From send() in one process to the handler in another, on an idle system, with each engine",
  figure: { name: "p50Ms", unit: " ms" },
  targets: [],
  cases: (world) =>
    subjectsIn(world, ["postgres", "redis", "sqs"]).map(({ name, settings, start }) => ({
      variant: "idle",
      subject: name,
      settings,
      async prepare() {
        const { adapter, processes, startWorkers, stop } = await start();
        const producer = await adapter.open();
        await producer.batch(0, 1)();
        await settleStore(world.databaseUrl);
        const pool = await startWorkers("latency");
        return {
          processes: { ...processes, ...pool.processes },
          measure: () => measureIdle(producer, pool),
          async finish() {
            await producer.close();
            await stop();
          },
        };
      },
    })),
};

const rateWith = (world: World, ready: number, { name, settings, start }: Subject): Case => ({
  variant: `the first ${WINDOW.toLocaleString("en")} of ${ready.toLocaleString("en")}`,
  subject: name,
  settings,
  async prepare() {
    const { adapter, processes, startWorkers, stop } = await start();
    await fill(adapter, ready);
    await settleStore(world.databaseUrl);
    const pool = await startWorkers("throughput");
    return {
      processes: { ...processes, ...pool.processes },
      measure: async () => ({ perSecond: await drain(pool, WINDOW, undefined) }),
      async finish() {
        await pool.stop();
        await stop();
      },
    };
  },
});

export const behind: Part = {
  title: `Drain rate of ${WINDOW.toLocaleString("en")} that wait in each engine, with more behind them`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [],
  cases: (world) =>
    [WINDOW, BACKLOG].flatMap((ready) =>
      subjectsIn(world, ["postgres", "redis"]).map((subject) => rateWith(world, ready, subject)),
    ),
};
