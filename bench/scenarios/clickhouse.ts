// A million facts into ClickHouse: reading them from the feed with what the record says of them, inserting the same rows, and both together.
//
// On a busy machine the seconds tell little. What each took of the processors is told beside them: on two quiet cores it takes at least half the sum, and
// at least what the busiest one took, as each of them has one thread at work.

import { createCarillon } from "../../src/index.ts";
import { openClickHouse } from "../../src/sinks/clickhouse.ts";
import { createClickHouse } from "../../src/sinks/clickhouse-http.ts";
import { COLUMNS, rowsBy } from "../../src/sinks/clickhouse-rows.ts";
import { prepareTables } from "../../src/sinks/clickhouse-tables.ts";
import type { Sink } from "../../src/sinks/sink.ts";
import { followerOf, SinkFeeder } from "../../src/steps/brokers/feed-sink.ts";
import { openDatabase } from "../../src/store/connection/database.ts";
import { type ClickHouse, startClickHouse } from "../../test/support/servers/clickhouse.ts";
import { clearCarillon } from "../adapters/carillon.ts";
import { secondsOf } from "../cpu.ts";
import { inBatches } from "../drain.ts";
import { notification } from "../payload.ts";
import { onCleanUp } from "../program.ts";
import type { Case, Figures, Part, Scenario, World } from "../scenario.ts";
import { runSql, settleStore } from "../sql.ts";

const FACTS = 1_000_000;
const NAME = "bench";
const DATABASE = "bench";
const never = new AbortController().signal;

/** Two for each notification: it was accepted, and sent, a thousand of them by each statement. Once for all cases. */
const SENT = `do $$
declare
  last uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    ids := array(select id from carillon.notifications where tenant = 1 and id > last order by id limit 1000);
    exit when cardinality(ids) = 0;
    insert into carillon.events
      (notification_id, tenant, type, from_status, to_status, attempt, outcome, provider, latency_ms, cost, detail)
    select id, 1, 'attempt', 'processing', 'sent', 1, 'accepted', 'ses', 12.5, 0.0001,
      json_build_object('receipt', '0102018c-7b2f-4b8a-8d44-' || id) from unnest(ids) as id;
    last := ids[cardinality(ids)];
    commit;
  end loop;
end $$`;

let filled: Promise<void> | undefined;
async function fill({ databaseUrl }: World): Promise<void> {
  await clearCarillon(databaseUrl);
  const carillon = createCarillon({ databaseUrl });
  await inBatches(FACTS / 2, (from, size) =>
    carillon.sendBatch(Array.from({ length: size }, (_, n) => notification(from + n))),
  );
  await carillon.close();
  await runSql(databaseUrl, SENT);
  await settleStore(databaseUrl);
}

let started: Promise<ClickHouse> | undefined;
async function start(): Promise<ClickHouse> {
  const server = await startClickHouse();
  if (!server) throw new Error("there is no ClickHouse, and it cannot be installed here");
  onCleanUp(server.stop);
  return server;
}

const open = ({ databaseUrl }: World) =>
  openDatabase({ url: databaseUrl, acceptConnections: 1, connections: 1, onError: () => {} });

/** All that the feed has, page by page. */
async function feed(world: World, sink: Sink): Promise<void> {
  const database = open(world);
  const feeder = new SinkFeeder({
    pool: database.own,
    name: NAME,
    sink,
    types: undefined,
    holder: "bench",
    monotonic: () => performance.now(),
    onMissed: (reason) => {
      throw new Error(reason);
    },
  });
  let carried = 0;
  while (carried < FACTS) {
    const round = await feeder.round(never);
    if ("carried" in round) carried += round.carried;
  }
  await feeder.resign();
  await database.close();
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
  await feed(world, {
    most,
    deliver: async (facts) => {
      pages.push(rowsOf(facts));
      return [];
    },
    close: async () => {},
  });
  return pages;
}

async function forgetFollower({ databaseUrl }: World): Promise<void> {
  await runSql(databaseUrl, `delete from carillon.followers where name = '${followerOf(NAME)}'`);
}

const telling = (world: World, subject: Way): Case => ({
  variant: "facts",
  subject,
  settings: "one tenant, half accepted and half sent, ClickHouse 18.16",
  async prepare() {
    filled ??= fill(world);
    started ??= start();
    await filled;
    const server = await started;
    const { url } = server;
    const bare = createClickHouse({ url });
    const sink = await openClickHouse({ type: "clickhouse", url, database: DATABASE }, NAME);
    await forgetFollower(world);
    await bare.run({ sql: `drop database if exists ${DATABASE}`, signal: never });
    const { insert, settings } = await prepareTables(bare, { database: DATABASE, table: "facts" }, never);
    const pages = subject === "bare insert" ? await pagesOf(world, sink.most) : [];
    if (subject === "bare insert") await forgetFollower(world);
    const act = {
      "read alone": () => feed(world, { ...sink, deliver: async () => [] }),
      "bare insert": async () => {
        for (const rows of pages) await bare.run({ sql: insert, rows, settings, signal: never });
      },
      carillon: () => feed(world, sink),
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
