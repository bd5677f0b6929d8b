// The page of workers and the database in a real browser: engines and moves between them, who leads, transactions, dead rows, sources and sinks.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import pg from "pg";
import { findChromium, NO_CHROMIUM, openBrowser } from "../support/chromium.ts";
import { type Dashboard, openDashboard, signInWith } from "../support/dashboard.ts";
import { NO_REDIS, type RedisServer, startRedis } from "../support/servers/redis.ts";
import { ADMIN_KEY, ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const executable = await findChromium();
const options = { skip: executable ? false : NO_CHROMIUM, timeout: 600_000 };
const WAITING = 3;

let service: Service;
let dashboard: Dashboard;
let redis: RedisServer | undefined;
const undo: (() => Promise<unknown>)[] = [];
const button = (name: string) => dashboard.page.getByRole("button", { name, exact: true });
const table = (name: string) => dashboard.page.getByRole("table", { name, exact: true });

before(async () => {
  if (!executable) return;
  const browser = await openBrowser(executable);
  redis = await startRedis();
  service = await startService({
    // Without a keeper a move stays where it is, and can be looked at.
    roles: ["api", "worker"],
    ...(redis && { redisUrl: redis.url, redisPrefix: "house" }),
    sources: { orders: { type: "kafka", brokers: ["127.0.0.1:1"], topic: "orders" } },
    sinks: { warehouse: { type: "clickhouse", url: "http://127.0.0.1:1" } },
  });
  if (redis) undo.push(redis.stop);
  undo.push(service.stop, browser.close);
  await service.ask("POST", "/v1/channels/console/pause", { reason: "a test" });
  for (let n = 0; n < WAITING; n++) {
    await service.ask("POST", "/v1/notifications", { channel: "console", content: { body: `Number ${n}` } });
  }
  dashboard = await openDashboard(browser.context, service);
  await dashboard.open("#/house");
  await signInWith(dashboard.page, ADMIN_KEY);
});
afterEach(() => {
  if (executable) assert.deepEqual(dashboard.complaints.splice(0), []);
});
after(async () => {
  for (const step of undo.reverse()) await step();
});

test("it says who leads, what is open in the database, and how many dead rows the queue has", options, async (t) => {
  const { page, open, look } = dashboard;
  const report = new pg.Client({ connectionString: service.databaseUrl, application_name: "a report" });
  await report.connect();
  t.after(() => report.end());
  await report.query("begin");
  await report.query("select 1");
  await service.db.query(
    `insert into carillon.leaders (name, holder, term, until) values ('keeper', 'somebody-who-left', 3, clock_timestamp() - interval '1 hour 20 minutes'),
       ('sink warehouse', 'host-1:4021', 1, clock_timestamp() + interval '1 hour 20 minutes')`,
  );
  await until(async () =>
    /a report/.test((await ask(service, "/v1/house")).oldestTransaction?.who) ? true : undefined,
  );
  await open("#/messages");
  await open("#/house");
  const leaders = table("Leaders");
  await leaders.getByRole("row", { name: /keeper nobody last somebody-who-left 1 h ago/ }).waitFor();
  await leaders.getByRole("row", { name: /sink warehouse held host-1:4021 in 1 h/ }).waitFor();
  await page.getByText(/process \d+ of .* \(a report\), idle in transaction/).waitFor();
  for (const name of ["ready", "later", "claims", "handoffs"])
    await table("Tables of the queue").getByRole("cell", { name, exact: true }).waitFor();
  await look("house-standing");
});

test("a source and a sink are paused with a reason, and resumed", options, async () => {
  const { look } = dashboard;
  const stateOf = async (kind: string) => (await ask(service, `/v1/${kind}`)).data[0].state;
  for (const [kind, name] of [
    ["sources", "orders"],
    ["sinks", "warehouse"],
  ] as const) {
    await table(kind)
      .getByRole("row", { name: new RegExp(name) })
      .waitFor();
    await button(`Pause ${name}`).click();
    await look(`house-pause-${kind}`);
    await dashboard.confirm(
      "Pause",
      new RegExp(`^1 of the ${kind} stops`),
      new RegExp(`${name} is paused`),
      "a repair",
    );
    assert.equal(await stateOf(kind), "paused");
    await table(kind).getByText("a repair").waitFor();
    await button(`Resume ${name}`).waitFor();
    await look(`house-paused-${kind}`);
    await button(`Resume ${name}`).click();
    await dashboard.confirm("Resume", new RegExp(`^1 of the ${kind} goes on`), new RegExp(`${name} goes on`));
    assert.notEqual(await stateOf(kind), "paused");
    await button(`Pause ${name}`).waitFor();
  }
});

test("ready work is moved to another engine, its progress is seen, and it is aborted", options, async (t) => {
  if (!redis) return t.skip(NO_REDIS);
  const { page, open, look } = dashboard;
  await open("#/messages");
  await open("#/house");
  const engines = table("Engines");
  await engines.getByRole("row", { name: `postgres in use ${WAITING} 1 of 1` }).waitFor();
  await look("house-engines");
  assert.deepEqual(await page.getByLabel("Move it to").getByRole("option").allTextContents(), ["redis"]);
  await page.getByLabel("New work goes there").selectOption("once it is empty");
  await button("Move…").click();
  await page
    .getByRole("dialog")
    .getByText(/waits in PostgreSQL until workers have emptied postgres/)
    .waitFor();
  await page.keyboard.press("Escape");
  assert.equal((await service.ask("GET", "/v1/queue/migration")).status, 404, "who says no has moved nothing");
  await page.getByLabel("New work goes there").selectOption("at once");
  await button("Move…").click();
  await look("house-move-question");
  await dashboard.confirm(
    "Move",
    /^3 notifications wait in postgres\. What is accepted goes to redis/,
    /is moved to redis/,
  );
  await page.getByText("moving", { exact: true }).waitFor();
  await engines.getByRole("row", { name: /^redis in use/ }).waitFor();
  await page.getByRole("progressbar", { name: "Progress of the move" }).waitFor();
  assert.equal(await button("Move…").count(), 0, "one at a time");
  await look("house-moving");

  await button("Abort the move").click();
  await dashboard.confirm("Abort the move", /3 notifications of 3 are still there/, /goes back to postgres/);
  await page.getByText("aborting", { exact: true }).waitFor();
  const keeper = await startService({
    databaseUrl: service.databaseUrl,
    roles: ["keeper"],
    redisUrl: redis.url,
    redisPrefix: "house",
  });
  t.after(keeper.stop);
  await page.getByText("aborted", { exact: true }).waitFor({ timeout: 120_000 });
  await engines.getByRole("row", { name: /^postgres in use/ }).waitFor();
  await button("Move…").waitFor();
  await look("house-aborted");
  const { data } = await ask(service, "/v1/audit");
  const done = data
    .map(({ action }: { action: string }) => action)
    .filter((action: string) => /^queue\.move/.test(action));
  assert.deepEqual(done, ["queue.move-abort", "queue.move"]);
});

test(
  "another tenant's administrator sees where ready work waits, and nothing more of the house",
  options,
  async (t) => {
    const key = await service.makeKey({ tenant: "stranger", scopes: ["admin"] });
    const other = await dashboard.page.context().newPage();
    t.after(() => other.close());
    const asked: string[] = [];
    other.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await dashboard.page.context().clearCookies();
    await other.goto(`${service.url}/dashboard#/house`);
    await signInWith(other, key);
    await other.getByText("In postgres.").waitFor();
    await other.getByRole("table", { name: "Health" }).waitFor();
    for (const name of ["Leaders", "Engines", "sources", "sinks"])
      assert.equal(await other.getByRole("table", { name, exact: true }).count(), 0, name);
    assert.deepEqual(
      asked.filter((path) => ["/v1/house", "/v1/sources", "/v1/sinks", "/v1/queue/migration"].includes(path)),
      [],
    );
  },
);
