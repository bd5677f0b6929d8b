import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { openClickHouse } from "#sinks/clickhouse.ts";
import { createClickHouse } from "#sinks/clickhouse-http.ts";
import { COLUMNS } from "#sinks/clickhouse-rows.ts";
import { prepareTables } from "#sinks/clickhouse-tables.ts";
import type { SettingsOfSink } from "#sinks/settings.ts";
import { listening } from "../support/listening.ts";
import { NO_CLICKHOUSE } from "../support/servers/clickhouse.ts";
import { askClickHouse, clickHouseForTests, runClickHouse, soon, tell } from "./clickhouse-facts.ts";

const server = await clickHouseForTests();
after(() => server?.stop());
const skip = server === undefined && NO_CLICKHOUSE;
const url = server?.url ?? "";

let databases = 0;
const newDatabase = () => `carillon_${process.pid}_${databases++}`;
const open = (settings: Partial<SettingsOfSink<"clickhouse">> = {}) =>
  openClickHouse({ type: "clickhouse", url, ...settings }, "analytics");
const count = async (table: string) => {
  const [row] = await askClickHouse<{ n: number }>(url, `select count() as n from ${table}`);
  return row?.n;
};

const sent = () =>
  tell({
    type: "sent",
    at: new Date("2027-01-01T09:00:00.123Z"),
    number: 7,
    event: "attempt",
    from: "processing",
    to: "sent",
    attempt: 2,
    provider: "ses",
    outcome: "accepted",
    error: "a tab\t, a \\ and a\nline for ada@example.com",
    latencyMs: 41.5,
    cost: 0.25,
    detail: { code: "550 5.1.1", category: "recipient", answer: { status: 200, body: "hello Ada" } },
    channel: "email",
    priority: "high",
    userId: "ada",
    acceptedAt: new Date("2027-01-01T08:59:59.100Z"),
  });

test("a fact is in the view as it was told, once however often it is told", { skip }, async (t) => {
  const database = newDatabase();
  const sink = await open({ database, users: true, errors: true });
  t.after(() => sink.close());
  const told = sent();
  for (let times = 0; times < 3; times++) assert.deepEqual(await sink.deliver([told], soon()), []);

  const [row, ...more] = await askClickHouse(url, `select * from ${database}.facts`);
  assert.deepEqual(more, []);
  const { at, accepted_at, ...rest } = row ?? {};
  assert.match(String(at), /^2027-01-01 09:00:00/);
  assert.match(String(accepted_at), /^2027-01-01 08:59:59/);
  assert.deepEqual(rest, {
    tenant: "acme",
    notification_id: told.fact.notificationId,
    number: 7,
    id: `${told.fact.notificationId}:7`,
    type: "sent",
    at_ms: Date.parse("2027-01-01T09:00:00.123Z"),
    event: "attempt",
    from_status: "processing",
    to_status: "sent",
    channel: "email",
    priority: "high",
    provider: "ses",
    outcome: "accepted",
    category: "recipient",
    code: "550 5.1.1",
    attempt: 2,
    latency_ms: 41.5,
    cost: 0.25,
    accepted_ms: Date.parse("2027-01-01T08:59:59.100Z"),
    waited_ms: 1023,
    user_id: "ada",
    error: "a tab\t, a \\ and a\nline for ada@example.com",
  });
  await runClickHouse(url, `optimize table ${database}.facts_rows final`);
  assert.equal(await count(`${database}.facts_rows`), 1);
});

test("who somebody is leaves only where the settings say so, and answers of receivers never do", {
  skip,
}, async (t) => {
  const database = newDatabase();
  const sink = await open({ database });
  t.after(() => sink.close());
  await sink.deliver([sent(), tell({ type: "failed", detail: { code: "no such address ada@example.com" } })], soon());

  const rows = JSON.stringify(await askClickHouse(url, `select * from ${database}.facts`));
  assert.doesNotMatch(rows, /ada/i);
  assert.match(rows, /550 5\.1\.1/);
});

test("what the record says nothing of is empty, and of numbers nothing", { skip }, async (t) => {
  const database = newDatabase();
  const sink = await open({ database });
  t.after(() => sink.close());
  await sink.deliver([tell({ type: "read", number: 3 })], soon());

  const [row] = await askClickHouse(
    url,
    `select channel, attempt, latency_ms, cost, accepted_at, waited_ms from ${database}.facts`,
  );
  assert.deepEqual(row, { channel: "", attempt: 0, latency_ms: null, cost: null, accepted_at: null, waited_ms: null });
});

test("several that begin at once make the tables once, and lose nothing", { skip }, async (t) => {
  const database = newDatabase();
  const sinks = await Promise.all(Array.from({ length: 4 }, () => open({ database, table: "told" })));
  t.after(() => Promise.all(sinks.map((sink) => sink.close())));
  const outcomes = await Promise.allSettled(sinks.map((sink) => sink.deliver([tell(), tell()], soon())));

  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "fulfilled", "fulfilled", "fulfilled"],
  );
  assert.equal(await count(`${database}.told`), 8);
  const tables = await askClickHouse<{ name: string }>(
    url,
    `select name from system.tables where database = '${database}' and name not like '.%' order by name`,
  );
  assert.deepEqual(
    tables.map(({ name }) => name),
    ["told", "told_rows", "told_version"],
  );
});

test("a table that somebody else has changed is named, and nothing is sent to it", { skip }, async (t) => {
  const database = newDatabase();
  const sink = await open({ database });
  await sink.deliver([tell()], soon());
  await sink.close();
  const refusing = async (sql: string, words: RegExp) => {
    await runClickHouse(url, sql);
    const again = await open({ database });
    t.after(() => again.close());
    await assert.rejects(again.deliver([tell()], soon()), words);
  };

  await refusing(
    `alter table ${database}.facts_rows modify column attempt String`,
    /changed the table carillon_\w+\.facts_rows: the column attempt is String, not UInt16/,
  );
  await refusing(
    `alter table ${database}.facts_rows drop column channel`,
    /the column channel is gone; the column attempt is String/,
  );
  assert.equal(await count(`${database}.facts_rows`), 1);
  await refusing(`drop table ${database}.facts_rows`, /facts_rows: it is gone/);
});

test("a column that is missing only now is noticed with the next page", { skip }, async (t) => {
  const database = newDatabase();
  const sink = await open({ database });
  t.after(() => sink.close());
  await sink.deliver([tell()], soon());
  await runClickHouse(url, `alter table ${database}.facts_rows drop column channel`);

  await assert.rejects(sink.deliver([tell()], soon()));
  await assert.rejects(sink.deliver([tell()], soon()), /the column channel is gone/);
  await runClickHouse(url, `alter table ${database}.facts_rows add column channel String`);
  assert.deepEqual(await sink.deliver([tell()], soon()), []);
  assert.equal(await count(`${database}.facts`), 2);
});

test("a table of somebody else's with the name of our view is left alone", { skip }, async (t) => {
  const database = newDatabase();
  await runClickHouse(url, `create database ${database}`);
  await runClickHouse(url, `create table ${database}.facts (n UInt8) engine = MergeTree order by n`);
  await runClickHouse(url, `insert into ${database}.facts values (1)`);
  const sink = await open({ database });
  t.after(() => sink.close());

  await assert.rejects(sink.deliver([tell()], soon()), /carillon_\w+\.facts is a table of somebody else's/);
  assert.equal(await count(`${database}.facts`), 1);
});

test("a newer release adds its columns, and an older one beside it goes on", { skip }, async (t) => {
  const database = newDatabase();
  const older = await open({ database });
  t.after(() => older.close());
  await older.deliver([tell()], soon());
  const region = { name: "region", type: "String", since: 2, value: () => "eu" };
  const clickHouse = createClickHouse({ url });
  t.after(() => clickHouse.close());
  const tables = { database, table: "facts", columns: [...COLUMNS, region] };

  const both = await Promise.all([1, 2].map(() => prepareTables(clickHouse, tables, soon())));
  for (const { insert } of both) assert.match(insert, /, region\) format/);
  await older.deliver([tell()], soon());
  const again = await open({ database });
  t.after(() => again.close());
  await again.deliver([tell()], soon());
  const rows = await askClickHouse(url, `select region, count() as n from ${database}.facts group by region`);
  assert.deepEqual(rows, [{ region: "", n: 3 }]);
  const [made] = await askClickHouse(url, `select max(version) as version from ${database}.facts_version`);
  assert.deepEqual(made, { version: 2 });
});

test("a fact that is refused for good is put aside alone, without its words", { skip }, async (t) => {
  const database = newDatabase();
  const sink = await open({ database, users: true });
  t.after(() => sink.close());
  const bad = ["no-uuid", "none-either"].map((id) => tell({ id, userId: "ada" }));
  const facts = Array.from({ length: 500 }, () => tell());
  facts.splice(123, 0, ...bad.slice(0, 1));
  facts.splice(499, 0, ...bad.slice(1));

  const refused = await sink.deliver(facts, soon());
  assert.deepEqual(
    refused.map(({ told }) => told.fact.notificationId),
    ["no-uuid", "none-either"],
  );
  for (const { error } of refused) {
    assert.match(error, /^ClickHouse: .+ \(code \d+\)$/);
    assert.doesNotMatch(error, /ada|none/);
  }
  assert.equal(await count(`${database}.facts`), 500);
});

test("an error that comes after the status is an error, one without an answer too, and no password is in it", async (t) => {
  const said: { status: number; text: string }[] = [];
  const standIn = await listening(
    createServer((_request, answer) => {
      const next = said.shift();
      if (next) answer.writeHead(next.status).end(next.text);
    }),
  );
  t.after(standIn.down);
  const clickHouse = createClickHouse({ url: `http://carillon:hunter2@127.0.0.1:${standIn.port}` });
  t.after(() => clickHouse.close());
  const insert = (signal = soon()) =>
    clickHouse.run({ sql: "insert into facts format TabSeparated", rows: "1\n", signal });
  const failing = async (status: number, text: string, words: RegExp) => {
    said.push({ status, text });
    await assert.rejects(insert(), (error: Error) => {
      assert.match(error.message, words);
      assert.doesNotMatch(`${error.message} ${error.stack} ${JSON.stringify(error)}`, /hunter2/);
      return true;
    });
  };

  await failing(
    200,
    "Code: 241. DB::Exception: Memory limit (for query) exceeded (version 26.7)",
    /Memory limit.*241\)$/,
  );
  await failing(502, "<html>a proxy</html>", /it answered 502/);
  const impatient = new AbortController();
  const hanging = insert(impatient.signal);
  impatient.abort(new Error("the lease was lost"));
  await assert.rejects(hanging, /the lease was lost/);
  await standIn.down();
  await assert.rejects(insert(), /ClickHouse: .*ECONNREFUSED/);
});
