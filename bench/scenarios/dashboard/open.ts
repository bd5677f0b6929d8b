// What open dashboards cost: the processor time of service and PostgreSQL with twenty of them, beyond that with none, as a share of what a drain uses.
// And how long it takes until somebody who opens one sees something.

import { findChromium, NO_CHROMIUM, openBrowser } from "../../../test/support/chromium.ts";
import { carillonAdapter, clearCarillon } from "../../adapters/carillon.ts";
import { secondsOf } from "../../cpu.ts";
import { drain, fill } from "../../drain.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { quantile } from "../../statistics.ts";
import { startWorkers } from "../../worker-pool.ts";
import { pause, type Service, startService } from "./service.ts";

const DASHBOARDS = 20;
const JOBS = 50_000;
const WATCHED_MS = 60_000;
const PAINTS = 10;
/** What its first page asks for, and how often: web/dashboard/overview.ts. */
const ASKED: { readonly [path: string]: number } = {
  "/v1/queue": 10_000,
  "/v1/ledger": 15_000,
  "/health": 15_000,
  "/v1/statistics?step=PT1M": 15_000,
  "/v1/providers": 30_000,
};

/** Begins anywhere within its step, as people do. */
async function follow({ ask }: Service, path: string, everyMs: number, over: AbortSignal): Promise<void> {
  await pause(Math.random() * everyMs);
  while (!over.aborted) {
    const next = pause(everyMs);
    await (await ask(path)).text();
    await next;
  }
}

/** Of these processes, while something goes on. */
async function coresOf(pids: readonly number[], act: () => Promise<unknown>): Promise<number> {
  const [from, before] = [performance.now(), secondsOf(pids)];
  await act();
  return (secondsOf(pids) - before) / ((performance.now() - from) / 1000);
}

const opened = (world: World): Case => ({
  variant: "a drain",
  subject: "carillon",
  settings: `${DASHBOARDS} dashboards on their first page for ${WATCHED_MS / 1000} s`,
  async prepare() {
    await clearCarillon(world.databaseUrl);
    await fill(carillonAdapter(world.databaseUrl), JOBS);
    await settleStore(world.databaseUrl);
    const pool = await startWorkers("carillon", "throughput", world, 1);
    const postgres = world.servers.postgres ?? 0;
    const { remaining } = carillonAdapter(world.databaseUrl);
    return {
      processes: pool.processes,
      async measure() {
        const pids = [...Object.values(pool.processes), postgres];
        const drainCores = await coresOf(pids, () => drain(pool, JOBS, remaining));
        await pool.stop();
        return { drainCores, ...(await watch(world, postgres, drainCores)) };
      },
      finish: async () => void (await clearCarillon(world.databaseUrl)),
    };
  },
});

async function watch(world: World, postgres: number, drainCores: number) {
  const service = await startService(world, "api,keeper,worker,scheduler");
  const pids = [service.pid, postgres];
  try {
    await pause(5_000);
    const idleCores = await coresOf(pids, () => pause(WATCHED_MS / 2));
    const over = new AbortController();
    const following = Array.from({ length: DASHBOARDS }, () =>
      Object.entries(ASKED).map(([path, everyMs]) => follow(service, path, everyMs, over.signal)),
    );
    const openCores = await coresOf(pids, () => pause(WATCHED_MS));
    over.abort();
    await Promise.all(following.flat());
    return { share: (openCores - idleCores) / drainCores, idleCores, openCores };
  } finally {
    await service.stop();
  }
}

export const open: Part = {
  title: `What ${DASHBOARDS} open dashboards take of what a drain takes`,
  figure: { name: "share", unit: "" },
  targets: [{ variant: "a drain", subject: "carillon", limits: { share: 0.02 } }],
  cases: (world) => [opened(world)],
};

const painted = (world: World): Case => ({
  variant: "first paint",
  subject: "carillon",
  settings: `Chromium, ${PAINTS} times with an empty cache`,
  isOnce: true,
  async prepare() {
    await clearCarillon(world.databaseUrl);
    const service = await startService(world, "api,keeper,worker,scheduler");
    const chromium = await findChromium();
    if (!chromium) throw new Error(NO_CHROMIUM);
    return {
      processes: { service: service.pid },
      async measure() {
        const took: number[] = [];
        for (let n = 0; n < PAINTS; n++) {
          const { context, close } = await openBrowser(chromium);
          const page = await context.newPage();
          await page.goto(`${service.url}/dashboard`);
          await page.getByLabel("API key").waitFor();
          const paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
          took.push(Number(await (await page.waitForFunction(paint)).jsonValue()));
          await close();
        }
        return { p50Ms: quantile(took, 0.5), maxMs: Math.max(...took) };
      },
      async finish() {
        await service.stop();
        await clearCarillon(world.databaseUrl);
      },
    };
  },
});

export const paint: Part = {
  title: "Until somebody who opens the dashboard sees something",
  figure: { name: "p50Ms", unit: " ms" },
  targets: [{ variant: "first paint", subject: "carillon", limits: { maxMs: 1_000 } }],
  cases: (world) => [painted(world)],
};
