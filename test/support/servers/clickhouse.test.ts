import assert from "node:assert/strict";
import { test } from "node:test";
import { ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { isAlive } from "../process.ts";
import { NO_CLICKHOUSE, startClickHouse } from "./clickhouse.ts";

test("what ClickHouse has taken outlives a restart and a kill -9, and nothing of it is left in the end", async (t) => {
  const server = await startClickHouse();
  if (server === undefined) return t.skip(NO_CLICKHOUSE);
  t.after(server.stop);
  const client = createClient({ url: server.url, log: { level: ClickHouseLogLevel.OFF } });
  t.after(() => client.close());
  const take = (n: number) => client.insert({ table: "facts", values: [{ n }], format: "JSONEachRow" });
  const kept = async () => {
    const answer = await client.query({ query: "select n from facts order by n", format: "JSONEachRow" });
    return (await answer.json<{ n: number }>()).map(({ n }) => n);
  };
  await client.command({ query: "create table facts (n UInt32) engine = MergeTree order by n" });

  await take(1);
  const first = server.pid();
  await server.restart();
  assert.ok(!isAlive(first));
  assert.deepEqual(await kept(), [1]);

  await take(2);
  await server.kill();
  await assert.rejects(kept());
  await server.restart();
  assert.deepEqual(await kept(), [1, 2]);

  await server.stop();
  assert.ok(!isAlive(server.pid()));
});
