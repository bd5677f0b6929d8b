// Whose clock decides: the database's, whatever a replica's own shows.

import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { startClock } from "#store/connection/clock.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type ServiceProcess, sandboxFor } from "../support/process.ts";
import { until } from "../support/until.ts";

const DAY = 86_400_000;
const preload = join(import.meta.dirname, "..", "support", "shifted-clock.ts");

/** A whole service whose machine's clock is wrong. */
async function startShifted(t: TestContext, shiftMs: number): Promise<{ service: ServiceProcess; db: pg.Pool }> {
  const database = await freshDatabase();
  const db = new pg.Pool({ connectionString: database.url, max: 2 });
  db.on("error", () => {});
  const sandbox = await sandboxFor(t);
  const service = await sandbox.start({
    DATABASE_URL: database.url,
    NODE_OPTIONS: `--import=${preload}`,
    SHIFT_MS: String(shiftMs),
  });
  t.after(async () => {
    await db.end();
    await database.drop();
  });
  return { service, db };
}
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const notification = { channel: "console", content: { body: "Hello" } };
const clockOf = async ({ ask }: ServiceProcess) =>
  (await ask("GET", "/health")).body.checks.find(({ name }: { name: string }) => name === "clock");

test("a replica a day ahead: schedules tick, nothing expires too early, and it says that its clock is wrong", async (t) => {
  const { service } = await startShifted(t, DAY);
  const { ask } = service;
  const { body } = await ask("PUT", "/v1/schedules/second", { every: "PT1S", notification });
  assert.ok(Date.parse(body.nextAt) < Date.now() + 60_000, body.nextAt);
  await ask("PUT", "/v1/schedules/daily", { cron: "0 0 1 1 *", until: inMs(400 * DAY), notification });
  const key = (await ask("POST", "/v1/keys", { name: "for an hour", scopes: ["read"], expiresAt: inMs(3_600_000) }))
    .body.key;
  assert.equal((await ask("GET", "/v1/schedules", undefined, { key })).status, 200);
  const token = (await ask("POST", "/v1/inbox/ada/tokens", { expiresInSeconds: 3_600 })).body;
  assert.ok(Math.abs(Date.parse(token.expiresAt) - Date.now() - 3_600_000) < 60_000, token.expiresAt);

  const sent = await ask("POST", "/v1/notifications", { ...notification, expiresAt: inMs(3_600_000) });
  assert.equal(sent.status, 202, JSON.stringify(sent.body));
  const madeAt = Number.parseInt(sent.body.notificationId.replaceAll("-", "").slice(0, 12), 16);
  assert.ok(Math.abs(madeAt - Date.now()) < 60_000, "ids, by which weeks are cut, go by the same clock");
  await until(async () =>
    (await ask("GET", `/v1/notifications/${sent.body.notificationId}`)).body.status === "sent" ? true : undefined,
  );
  await until(async () => ((await ask("GET", "/v1/schedules/second/runs")).body.data.length > 1 ? true : undefined));

  const { healthy, detail } = await clockOf(service);
  assert.equal(healthy, true);
  assert.match(detail, /^86\d{3}\.\d s ahead of the database's$/);
  await service.says(/this machine's clock is not the database's/);
  assert.match((await ask("GET", "/metrics")).body, /^carillon_clock_ahead_seconds 86/m);
});

test("a replica two minutes behind: what has expired is refused, and its schedules tick when it is time", async (t) => {
  const { service, db } = await startShifted(t, -120_000);
  const { ask } = service;
  const late = await ask("POST", "/v1/notifications", { ...notification, expiresAt: inMs(-60_000) });
  assert.deepEqual([late.status, late.body.errors?.[0].path], [422, "/expiresAt"]);
  const { key, id } = (await ask("POST", "/v1/keys", { name: "over", scopes: ["read"] })).body;
  await db.query("update carillon.keys set expires_at = now() - interval '1 minute' where id = $1", [id]);
  const refused = await ask("GET", "/v1/schedules", undefined, { key });
  assert.deepEqual([refused.status, refused.body.detail], [401, "the API key has expired"]);
  assert.equal(
    (await ask("POST", "/v1/keys", { name: "past", scopes: ["read"], expiresAt: inMs(-60_000) })).status,
    422,
  );
  const { body } = await ask("PUT", "/v1/schedules/second", { every: "PT1S", notification });
  assert.ok(Date.parse(body.nextAt) > Date.now() - 60_000, body.nextAt);
  await until(async () => ((await ask("GET", "/v1/schedules/second/runs")).body.data.length > 0 ? true : undefined));
  assert.match((await clockOf(service)).detail, /s behind the database's$/);
});

test("the estimate stays within what an answer allows, however slow the answers are", async () => {
  let monotonicMs = 0;
  let databaseMs = 1_000_000;
  const pass = (ms: number) => {
    monotonicMs += ms;
    databaseMs += ms;
  };
  /** How long a question and its answer take. */
  const ways: [number, number][] = [
    [50, 0],
    [0, 400],
  ];
  const query = async () => {
    const [there, back] = ways.shift() ?? [0, 0];
    pass(there);
    const now = new Date(databaseMs);
    pass(back);
    return { rows: [{ now, trueNow: now }] };
  };
  const clock = await startClock({
    db: { query } as unknown as pg.Pool,
    wallClock: () => databaseMs - 5_000,
    monotonic: () => monotonicMs,
    onAstray: (aheadMs, isAstray) => assert.deepEqual([isAstray, Math.round(aheadMs / 100)], [true, -50]),
  });
  try {
    assert.ok(Math.abs(clock.nowMs() - databaseMs) <= 26, String(clock.nowMs() - databaseMs));
    pass(3_600_000);
    assert.ok(Math.abs(clock.nowMs() - databaseMs) <= 26);
    assert.equal(clock.now().getTime(), clock.nowMs());
  } finally {
    clock.stop();
  }
});
