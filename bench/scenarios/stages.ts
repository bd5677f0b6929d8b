// What each stage costs a notification, in microseconds of one connection and in row-writes, beside the least that SQL
// could do for the same step.

import pg from "pg";
import { createPostgresQueue } from "../../src/queue/postgres/engine.ts";
import { openDatabase } from "../../src/store/connection/database.ts";
import type { Adapter, BulkProducer } from "../adapters/adapter.ts";
import { carillonAdapter } from "../adapters/carillon.ts";
import { copyAdapter } from "../adapters/copy.ts";
import { fill } from "../drain.ts";
import type { Case, Figures, Scenario, World } from "../scenario.ts";
import { runSql, settleStore } from "../sql.ts";

const ROWS = 50_000;
const BATCH = 1000;

/** The record is kept in neither floor: a claim that only deletes, a settlement that only writes a line. */
const CLAIM_FLOOR = `delete from carillon.ready where ctid = any (array(
  select ctid from carillon.ready where priority = 2 order by seq limit ${BATCH} for update skip locked)) returning seq`;
const SETTLE_FLOOR = `insert into carillon.events (notification_id, tenant, type, from_status, to_status)
  select id, 1, 'attempt', 'processing', 'sent' from unnest($1::uuid[]) as id`;

type Stage = { subject: string; settings: string; isFull: boolean; run: (world: World) => Promise<number> };

async function writes(url: string): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  const [row] = await runSql<{ n: string }>(
    url,
    "select sum(n_tup_ins + n_tup_upd + n_tup_del) as n from pg_stat_user_tables where schemaname = 'carillon'",
  );
  return Number(row?.n ?? 0);
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
};

function caseOf(world: World, variant: string, { subject, settings, isFull, run }: Stage): Case {
  const adapter = carillonAdapter(world.databaseUrl);
  return {
    variant,
    subject,
    settings,
    async prepare() {
      await adapter.clear();
      await fill(adapter, isFull ? ROWS : 1);
      await settleStore(world.databaseUrl);
      return {
        async measure(): Promise<Figures> {
          const before = await writes(world.databaseUrl);
          const ms = await run(world);
          const after = await writes(world.databaseUrl);
          return { microseconds: (ms * 1000) / ROWS, rowWrites: (after - before) / ROWS };
        },
        finish: () => adapter.clear(),
      };
    },
  };
}

/** Claims everything, settles everything, one batch after the other; adds up the time of the one asked for. */
async function throughQueue(world: World, stage: "claim" | "settle"): Promise<number> {
  const db = openDatabase({ url: world.databaseUrl, acceptConnections: 1, connections: 1, onError: () => {} });
  const queue = createPostgresQueue(db.work, () => performance.now());
  let spent = 0;
  for (;;) {
    let attempts: Awaited<ReturnType<typeof queue.claim>> = [];
    const claimMs = await timed(async () => {
      attempts = await queue.claim(1, BATCH, 30_000);
    });
    if (attempts.length === 0) break;
    const batch = attempts.map((attempt) => ({
      attempt,
      settlement: { to: "sent" as const },
      line: { outcome: "accepted", provider: "noop", latencyMs: 0.1 },
    }));
    const settleMs = stage === "settle" ? await timed(() => queue.settle(batch)) : 0;
    spent += stage === "claim" ? claimMs : settleMs;
  }
  await db.close();
  return spent;
}

async function withClient(world: World, work: (client: pg.Client) => Promise<number>): Promise<number> {
  const client = new pg.Client({ connectionString: world.databaseUrl });
  await client.connect();
  return work(client).finally(() => client.end());
}

const floorOfClaim = (world: World) =>
  withClient(world, (client) =>
    timed(async () => {
      while (((await client.query(CLAIM_FLOOR)).rowCount ?? 0) > 0);
    }),
  );

const floorOfSettle = (world: World) =>
  withClient(world, async (client) => {
    const { rows } = await client.query<{ id: string }>("select id from carillon.notifications");
    const ids = rows.map(({ id }) => id);
    return timed(async () => {
      for (let from = 0; from < ids.length; from += BATCH)
        await client.query(SETTLE_FLOOR, [ids.slice(from, from + BATCH)]);
    });
  });

async function accepting(adapter: Adapter<BulkProducer>): Promise<number> {
  const producer = await adapter.open();
  const calls = Array.from({ length: ROWS / BATCH }, (_, n) => producer.batch(10 + n * BATCH, BATCH));
  const ms = await timed(async () => {
    for (const call of calls) await call();
  });
  await producer.close();
  return ms;
}
export const stages: Scenario = {
  summary: "the cost of accepting, claiming and settling, stage by stage, beside the floor",
  parts: {
    cost: {
      title: `Microseconds per notification on one connection, batches of ${BATCH}`,
      figure: { name: "microseconds", unit: " µs" },
      targets: [],
      cases: (world) => [
        caseOf(world, "accept", {
          subject: "carillon",
          settings: "sendBatch",
          isFull: false,
          run: () => accepting(carillonAdapter(world.databaseUrl)),
        }),
        caseOf(world, "accept", {
          subject: "floor",
          settings: "COPY into both tables",
          isFull: false,
          run: () => accepting(copyAdapter(world.databaseUrl)),
        }),
        caseOf(world, "claim", {
          subject: "carillon",
          settings: "ready to a claim, with the request",
          isFull: true,
          run: (given) => throughQueue(given, "claim"),
        }),
        caseOf(world, "claim", { subject: "floor", settings: "delete only", isFull: true, run: floorOfClaim }),
        caseOf(world, "claim and settle", {
          subject: "carillon",
          settings: "time of the settlement; row-writes of both",
          isFull: true,
          run: (given) => throughQueue(given, "settle"),
        }),
        caseOf(world, "claim and settle", {
          subject: "floor",
          settings: "one line of the record only",
          isFull: true,
          run: floorOfSettle,
        }),
      ],
    },
  },
};
