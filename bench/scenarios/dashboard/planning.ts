// How long it takes to plan what is to be done with very many dead letters: from the request to an answer that has counted all of them.
//
// Each is to a user of its own, with a template and an address: all that a plan looks at, it looks at here.

import pg from "pg";
import { migrate } from "../../../src/store/connection/migrate.ts";
import { fillDead } from "../../../test/support/many.ts";
import { clearCarillon } from "../../adapters/carillon.ts";
import type { Case, Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { quantile } from "../../statistics.ts";
import { LOOK_MS, pause, type Service, startService } from "./service.ts";

const LETTERS = Number(process.env.LETTERS ?? 100_000);
const PLANS = 9;
const WARM_UP = 1;
const MOST_MS = 2_000;
const FILTERS = { all: {}, error: { error: "503" } } as const;

async function fill(url: string): Promise<void> {
  await clearCarillon(url);
  await migrate(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await fillDead(client, { tenant: 1, count: LETTERS });
  } finally {
    await client.end();
  }
  await settleStore(url);
}

type PlanBody = { planId: string; state: string; count: number };

/** In milliseconds, until all are counted: where the request does not get that far, the scheduler does. */
async function plan({ ask }: Service, filter: object): Promise<number> {
  const startedAt = performance.now();
  let body = (await (await ask("/v1/plans", { kind: "requeue", filter })).json()) as PlanBody;
  while (body.state === "counting") {
    await pause(LOOK_MS);
    body = (await (await ask(`/v1/plans/${body.planId}`)).json()) as PlanBody;
  }
  const tookMs = performance.now() - startedAt;
  if (body.count !== LETTERS) throw new Error(`the plan is for ${body.count}`);
  await ask(`/v1/plans/${body.planId}/abort`, {});
  return tookMs;
}

const planning = (world: World): Case => ({
  variant: "a plan by filter",
  subject: "carillon",
  settings: `one process with api and scheduler; ${PLANS} plans of each filter, one after the other`,
  isOnce: true,
  async prepare() {
    await fill(world.databaseUrl);
    const service = await startService(world, "api,scheduler");
    return {
      processes: { service: service.pid },
      async measure() {
        const figures: { [name: string]: number } = {};
        for (const [name, filter] of Object.entries(FILTERS)) {
          const took: number[] = [];
          for (let n = -WARM_UP; n < PLANS; n += 1) {
            const tookMs = await plan(service, filter);
            if (n >= 0) took.push(tookMs);
          }
          figures[`${name}P50Ms`] = quantile(took, 0.5);
          figures[`${name}WorstMs`] = Math.max(...took);
        }
        return { ...figures, worstMs: Math.max(...Object.keys(FILTERS).map((name) => figures[`${name}WorstMs`] ?? 0)) };
      },
      async finish() {
        await service.stop();
        await clearCarillon(world.databaseUrl);
      },
    };
  },
});

export const plans: Part = {
  title: `planning to send ${LETTERS.toLocaleString("en")} dead letters again`,
  figure: { name: "worstMs", unit: "ms" },
  targets: [{ variant: "a plan by filter", subject: "carillon", limits: { worstMs: MOST_MS } }],
  cases: (world) => [planning(world)],
};
