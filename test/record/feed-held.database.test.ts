// A transaction that stays open holds up everybody who follows: health and metrics say which it is, and nothing is lost.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import pg from "pg";
import { readFeedStanding } from "#record/feed-standing.ts";
import { type ControllableServer, controllableServer } from "../support/postgres.ts";
import { ask, email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let server: ControllableServer;
let service: Service;
before(async () => {
  server = await controllableServer({ max_prepared_transactions: "4" });
  service = await startService({ roles: ["api"], databaseUrl: server.url });
  await service.db.query("create database elsewhere");
});
after(async () => {
  await service.stop();
  await server.remove();
});

async function connect(t: TestContext, url: string): Promise<{ client: pg.Client; pid: number }> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  t.after(() => client.end());
  return { client, pid: (await client.query("select pg_backend_pid() as pid")).rows[0].pid };
}
const elsewhere = () => server.url.replace("/postgres?", "/elsewhere?");

const send = async (): Promise<string> =>
  (await service.ask("POST", "/v1/notifications", email())).body.notificationId as string;
const told = async (id: string): Promise<boolean> =>
  (await ask(service, "/v1/events?limit=1000")).data.some(
    (fact: { notificationId: string }) => fact.notificationId === id,
  );
type Part = { name: string; healthy: boolean; degraded?: true; detail: string };
const feedPart = async (): Promise<Part> => {
  const { status, body } = await service.ask("GET", "/health", undefined, { key: null });
  assert.equal(status, 200);
  return body.checks.find(({ name }: Part) => name === "feed");
};
const figure = async (name: string): Promise<number> => {
  const { body } = await service.ask("GET", "/metrics", undefined, { key: null });
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(body)?.[1]);
};
/** As if it had been written before. */
const age = (id: string) =>
  service.db.query("update carillon.feed set at = at - interval '100 seconds' where ids && array[$1::uuid]", [id]);

test("a transaction of another database that stays open is named by its process, with its age, and holds up nothing for good", async (t) => {
  const { client, pid } = await connect(t, elsewhere());
  await client.query("begin");
  await client.query("create table kept_open ()");
  const id = await send();
  assert.equal(await told(id), false);
  assert.deepEqual([(await feedPart()).degraded, (await feedPart()).detail], [undefined, "nothing holds it up"]);
  await age(id);
  const { healthy, degraded, detail } = await feedPart();
  assert.deepEqual([healthy, degraded], [true, true]);
  assert.match(detail, new RegExp(`^held up for \\d+ s by a transaction of process ${pid}, open for \\d+ s$`));
  assert.ok((await figure("carillon_feed_held_seconds")) >= 100);
  assert.ok((await figure("carillon_feed_horizon_age_seconds")) > 0);
  await client.query("rollback");
  await until(async () => ((await told(id)) ? true : undefined));
  await until(async () => ((await feedPart()).degraded ? undefined : true));
  assert.equal(await figure("carillon_feed_held_seconds"), 0);
});

test("one that only reads holds up nothing", async (t) => {
  const { client } = await connect(t, server.url);
  await client.query("begin isolation level repeatable read");
  await client.query("select from carillon.feed");
  const id = await send();
  await until(async () => ((await told(id)) ? true : undefined));
});

test("a forgotten prepared transaction is named, here and in another database", async (t) => {
  for (const url of [server.url, elsewhere()]) {
    const { client } = await connect(t, url);
    await client.query("begin");
    await client.query("create table prepared ()");
    await client.query("prepare transaction 'forgotten'");
    const id = await send();
    await age(id);
    assert.match(
      (await feedPart()).detail,
      /^held up for \d+ s by a transaction prepared as forgotten, open for \d+ s$/,
    );
    assert.equal(await told(id), false);
    await client.query("rollback prepared 'forgotten'");
    await until(async () => ((await told(id)) ? true : undefined));
  }
});

test("whose age our user may not see is named all the same", async (t) => {
  const { client, pid } = await connect(t, elsewhere());
  await client.query("begin");
  await client.query("create table not_ours ()");
  const { client: ours } = await connect(t, server.url);
  await ours.query("create role plain");
  await ours.query("grant usage on schema carillon to plain");
  await ours.query("grant select on all tables in schema carillon to plain");
  await ours.query("set role plain");
  const { holder } = await until(async () => {
    const standing = await readFeedStanding(ours);
    return standing.holder?.pid === pid ? standing : undefined;
  });
  assert.deepEqual(holder, { pid, gid: null, ageMs: null });
});

test("who follows from inside and is too far behind, or has missed something, is named", async () => {
  const id = await send();
  await until(async () => ((await told(id)) ? true : undefined));
  const { rows } = await service.db.query("select key, seq from carillon.feed where ids && array[$1::uuid]", [id]);
  await service.db.query(
    "insert into carillon.followers (name, epoch, key, seq, ordinal) values ('a-sink', 1, $1, $2, 0)",
    [rows[0].key, rows[0].seq],
  );
  await service.db.query("update carillon.feed set at = at - interval '10 minutes' where ids && array[$1::uuid]", [id]);
  assert.match((await feedPart()).detail, /^a-sink is \d+ s behind$/);
  assert.ok((await figure('carillon_follower_lag_seconds{follower="a-sink"}')) >= 600);
  await service.db.query("update carillon.followers set seq = seq + 1, missed_at = carillon.now()");
  const { degraded, detail } = await feedPart();
  assert.deepEqual([degraded, detail], [true, "a-sink has missed something: it was behind what is kept"]);
});
