// The whole service and a real ClickHouse: what the feed has, the table has, whatever happens to the server.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { readConfig } from "#config/read.ts";
import { NO_CLICKHOUSE, startClickHouse } from "../support/servers/clickhouse.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { askClickHouse } from "./clickhouse-facts.ts";

const server = await startClickHouse();
after(() => server?.stop());
const skip = server === undefined && NO_CLICKHOUSE;

const start = async (database: string): Promise<Service> => {
  const sinks = { analytics: { type: "clickhouse", url: server?.url, database } };
  const env = { CARILLON_SINKS: JSON.stringify(sinks), CARILLON_ROLES: "api,worker,keeper,sink" };
  const { roles, sinks: read } = await readConfig({ env, cwd: import.meta.dirname });
  return startService({ roles, sinks: read });
};

/** So many times a hundred. */
async function send(service: Service, hundreds: number): Promise<void> {
  for (let n = 0; n < hundreds; n++) {
    const notifications = Array.from({ length: 100 }, () => ({ channel: "console", content: { body: "Hello" } }));
    const { status } = await service.ask("POST", "/v1/notifications/batch", { notifications });
    assert.equal(status, 200);
  }
}

type Counted = { all: number; facts: number };

/** On machines with every core busy. */
const LONG_MS = 120_000;

/** What the feed has once nothing waits any more. */
const countFeed = (service: Service, sent: number): Promise<number> =>
  until(async () => {
    const { rows } = await service.db.query(
      `select sum(size)::int as n, (select count(*)::int from carillon.events where to_status = 'sent') as ended from carillon.feed`,
    );
    return rows[0].ended === sent ? rows[0].n : undefined;
  }, LONG_MS);

async function countTable(database: string): Promise<Counted> {
  const [counted] = await askClickHouse<Counted>(
    server?.url ?? "",
    `select count() as all, uniqExact(id) as facts from ${database}.facts`,
  );
  return counted ?? { all: 0, facts: 0 };
}

test("through kill -9 of the server every fact of the feed is in the table, once", { skip }, async (t) => {
  const service = await start("killed");
  t.after(service.stop);
  await send(service, 3);
  await until(async () => (await countTable("killed").catch(() => undefined))?.facts || undefined, LONG_MS);
  await server?.kill();
  await send(service, 3);
  await server?.restart();
  await send(service, 3);
  const told = await countFeed(service, 900);

  assert.ok(told >= 1_800, `${told} facts`);
  await until(async () => (await countTable("killed")).facts >= told || undefined, LONG_MS);
  assert.deepEqual(await countTable("killed"), { all: told, facts: told });
});

test("a server that is away from the start has everything later, from the oldest fact on", { skip }, async (t) => {
  await server?.kill();
  const service = await start("away");
  t.after(service.stop);
  await send(service, 2);
  const told = await countFeed(service, 200);
  // It has been tried, in vain.
  await until(async () => {
    const { rows } = await service.db.query("select error from carillon.connectors where error is not null");
    return rows[0]?.error.includes("ECONNREFUSED") || undefined;
  }, LONG_MS);
  await server?.restart();

  await until(async () => (await countTable("away").catch(() => undefined))?.facts === told || undefined, LONG_MS);
  assert.deepEqual(await countTable("away"), { all: told, facts: told });
});

test("a replay since before everything tells all of it again, and changes no count", { skip }, async (t) => {
  const beforeAll = new Date(Date.now() - 60_000).toISOString();
  const service = await start("replayed");
  t.after(service.stop);
  await send(service, 2);
  const told = await countFeed(service, 200);
  const carried = async () => (await service.ask("GET", "/v1/sinks")).body.data[0].carried;
  await until(async () => (await carried()) === told || undefined, LONG_MS);
  const before = await countTable("replayed");

  const { status, body } = await service.ask("POST", "/v1/sinks/analytics/replay", { since: beforeAll });
  assert.deepEqual([status, body.moved], [200, true]);
  await until(async () => (await carried()) === 2 * told || undefined, LONG_MS);
  assert.deepEqual(before, { all: told, facts: told });
  assert.deepEqual(await countTable("replayed"), before);
});
