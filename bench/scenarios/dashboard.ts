// How long those answers take that a dashboard asks for again and again, with ten million notifications in the record.
//
// By one process with the roles api and keeper, one request after the other. What was filled in is first counted, as after an upgrade.

import pg from "pg";
import { migrate } from "../../src/store/connection/migrate.ts";
import { fillMany } from "../../test/support/many.ts";
import { clearCarillon } from "../adapters/carillon.ts";
import type { Case, Part, Scenario, World } from "../scenario.ts";
import { count, runSql, settleStore } from "../sql.ts";
import { quantile } from "../statistics.ts";
import { open, paint } from "./dashboard/open.ts";
import { plans } from "./dashboard/planning.ts";
import { LOOK_MS, pause, startService } from "./dashboard/service.ts";

const NOTIFICATIONS = Number(process.env.NOTIFICATIONS ?? 10_000_000);
const REQUESTS = Number(process.env.REQUESTS ?? 300);
const WARM_UP = 20;
/** Of a hundred, one is ready and one is for later; the rest was sent. */
const WAITING = Math.ceil(NOTIFICATIONS / 100);
const MOST_P99_MS = 50;
/** With a server of one's own: what was filled in stays, and a run that finds as many fills in nothing. */
const IS_KEPT = process.env.KEEP === "1";

const PATHS = {
  ledger: "/v1/ledger",
  queue: "/v1/queue",
  statistics: "/v1/statistics?step=PT1M&by=channel,status",
  day: "/v1/statistics?step=PT1H&by=provider",
  metrics: "/metrics",
  messages: "/v1/notifications?limit=50",
  costs: "/v1/costs",
  channels: "/v1/costs?by=channel",
  providers: "/v1/providers",
} as const;

async function isFilled(url: string): Promise<boolean> {
  const [row] = await runSql<{ isThere: boolean }>(
    url,
    `select to_regclass('carillon.notifications') is not null as "isThere"`,
  );
  return row?.isThere === true && (await count(url, "carillon.notifications")) === NOTIFICATIONS;
}

async function fill(url: string): Promise<void> {
  if (IS_KEPT && (await isFilled(url))) return migrate(url).then(() => settleStore(url));
  await clearCarillon(url);
  await migrate(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await fillMany(client, { tenant: 1, ended: NOTIFICATIONS - 2 * WAITING, ready: WAITING, later: WAITING });
  } finally {
    await client.end();
  }
  await settleStore(url);
}

const looking = (world: World): Case => ({
  variant: "a dashboard",
  subject: "carillon",
  settings: `one process with api and keeper; ${REQUESTS} requests of each, one after the other`,
  isOnce: true,
  async prepare() {
    await fill(world.databaseUrl);
    const service = await startService(world, "api,keeper");
    const { ask } = service;
    const countedFrom = performance.now();
    while (!((await (await ask(PATHS.statistics)).json()) as { isComplete: boolean }).isComplete) await pause(LOOK_MS);
    const countSeconds = (performance.now() - countedFrom) / 1000;
    return {
      processes: { service: service.pid },
      async measure() {
        const figures: { [name: string]: number } = { countSeconds };
        for (const [name, path] of Object.entries(PATHS)) {
          const took: number[] = [];
          for (let n = -WARM_UP; n < REQUESTS; n += 1) {
            const startedAt = performance.now();
            await (await ask(path)).text();
            if (n >= 0) took.push(performance.now() - startedAt);
          }
          figures[`${name}P50Ms`] = quantile(took, 0.5);
          figures[`${name}P99Ms`] = quantile(took, 0.99);
        }
        return { ...figures, p99Ms: Math.max(...Object.keys(PATHS).map((name) => figures[`${name}P99Ms`] ?? 0)) };
      },
      async finish() {
        const { accepted, balanced } = (await (await ask(PATHS.ledger)).json()) as {
          accepted: number;
          balanced: boolean;
        };
        await service.stop();
        if (!IS_KEPT) await clearCarillon(world.databaseUrl);
        if (accepted !== NOTIFICATIONS || !balanced)
          throw new Error(`the ledger has ${accepted}, balanced: ${balanced}`);
      },
    };
  },
});

const looks: Part = {
  title: `with ${NOTIFICATIONS.toLocaleString("en")} notifications, of which ${(2 * WAITING).toLocaleString("en")} wait`,
  figure: { name: "p99Ms", unit: "ms" },
  targets: [
    {
      variant: "a dashboard",
      subject: "carillon",
      limits: Object.fromEntries(Object.keys(PATHS).map((name) => [`${name}P99Ms`, MOST_P99_MS])),
    },
  ],
  cases: (world) => [looking(world)],
};

export const dashboard: Scenario = {
  summary:
    "how long the ledger, the queue, statistics, costs, metrics and lists take with ten million notifications, and a plan for a hundred thousand",
  parts: { looks, plans, open, paint },
};
