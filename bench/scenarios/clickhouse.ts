// A million facts into ClickHouse: reading them from the feed with what the record says of them, inserting the same rows, and both together.
//
// On a busy machine the seconds tell little. What each took of the processors is told beside them: on two quiet cores it takes at least half the sum, and
// at least what the busiest one took, as each of them has one thread at work.

import { openClickHouse } from "../../src/sinks/clickhouse.ts";
import { createClickHouse } from "../../src/sinks/clickhouse-http.ts";
import { COLUMNS, rowsBy } from "../../src/sinks/clickhouse-rows.ts";
import { prepareTables } from "../../src/sinks/clickhouse-tables.ts";
import { type ClickHouse, startClickHouse } from "../../test/support/servers/clickhouse.ts";
import { secondsOf } from "../cpu.ts";
import { feedFacts, fillFacts } from "../facts.ts";
import { onCleanUp } from "../program.ts";
import type { Case, Figures, Part, Scenario, World } from "../scenario.ts";

const FACTS = 1_000_000;
const NAME = "bench";
const DATABASE = "bench";
const never = new AbortController().signal;

/** Once for all cases. */
let filled: Promise<void> | undefined;
let started: Promise<ClickHouse> | undefined;
async function start(): Promise<ClickHouse> {
  const server = await startClickHouse();
  if (!server) throw new Error("there is no ClickHouse, and it cannot be installed here");
  onCleanUp(server.stop);
  return server;
}

/** Seconds of each, and facts per second. */
async function timed(world: World, server: ClickHouse, act: () => Promise<void>): Promise<Figures> {
  const { postgres } = world.servers;
  const pids = { postgres: postgres === undefined ? [] : [postgres], clickhouse: [server.pid()] };
  const used = () => ({ postgres: secondsOf(pids.postgres), clickhouse: secondsOf(pids.clickhouse) });
  const [before, own, startedAt] = [used(), process.cpuUsage(), performance.now()];
  await act();
  const seconds = (performance.now() - startedAt) / 1000;
  const [after, { user, system }] = [used(), process.cpuUsage(own)];
  return {
    seconds,
    perSecond: FACTS / seconds,
    nodeCpuSeconds: (user + system) / 1e6,
    postgresCpuSeconds: after.postgres - before.postgres,
    clickhouseCpuSeconds: after.clickhouse - before.clickhouse,
  };
}

type Way = "read alone" | "bare insert" | "carillon";

/** Rows as they are sent, made before the clock starts. */
async function pagesOf(world: World, most: number): Promise<string[]> {
  const pages: string[] = [];
  const rowsOf = rowsBy(COLUMNS, { users: false, errors: false });
  await feedFacts(
    world,
    {
      most,
      deliver: async (facts) => {
        pages.push(rowsOf(facts));
        return [];
      },
      close: async () => {},
    },
    FACTS,
  );
  return pages;
}

const telling = (world: World, subject: Way): Case => ({
  variant: "facts",
  subject,
  settings: "one tenant, half accepted and half sent, ClickHouse 18.16",
  async prepare() {
    filled ??= fillFacts(world, FACTS);
    started ??= start();
    await filled;
    const server = await started;
    const { url } = server;
    const bare = createClickHouse({ url });
    const sink = await openClickHouse({ type: "clickhouse", url, database: DATABASE }, NAME);
    await bare.run({ sql: `drop database if exists ${DATABASE}`, signal: never });
    const { insert, settings } = await prepareTables(bare, { database: DATABASE, table: "facts" }, never);
    const pages = subject === "bare insert" ? await pagesOf(world, sink.most) : [];
    const act = {
      "read alone": () => feedFacts(world, { ...sink, deliver: async () => [] }, FACTS),
      "bare insert": async () => {
        for (const rows of pages) await bare.run({ sql: insert, rows, settings, signal: never });
      },
      carillon: () => feedFacts(world, sink, FACTS),
    }[subject];
    return {
      processes: { clickhouse: server.pid() },
      measure: () => timed(world, server, act),
      async finish() {
        const [[found] = []] = await bare.list({ sql: `select uniqExact(id) from ${DATABASE}.facts`, signal: never });
        await sink.close();
        await bare.close();
        const due = subject === "read alone" ? 0 : FACTS;
        if (Number(found) !== due) throw new Error(`${found} facts are there of ${due}`);
      },
    };
  },
});

const facts: Part = {
  title: `${FACTS.toLocaleString("en")} facts into ClickHouse`,
  figure: { name: "perSecond", unit: "/s" },
  targets: [{ variant: "facts", subject: "carillon", limits: { seconds: 30 } }],
  cases: (world) => [telling(world, "read alone"), telling(world, "bare insert"), telling(world, "carillon")],
};

export const clickhouse: Scenario = { summary: "a million facts into ClickHouse", parts: { facts } };
