// Replicas of 0.2.0 beside upgraded ones: what they say about schedules, which they call recurrences, still holds.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { findSchedule } from "#store/schedules.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";

let database: FreshDatabase;
let db: pg.Pool;
before(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  db = new pg.Pool({ connectionString: database.url });
  db.on("error", () => {});
});
after(async () => {
  await db.end();
  await database.drop();
});

// Word for word as 0.2.0 has them.
const COLUMNS = `tenant, key, cron, every, timezone, from_at as "from", until_at as "until", catch_up as "catchUp", notice,
  next_at as "nextAt", paused_at as "pausedAt", error, put_off_until as "retryAt", created_at as "createdAt", updated_at as "updatedAt"`;
const PUT = `insert into carillon.recurrences as r (tenant, key, cron, every, timezone, from_at, until_at, catch_up, notice, next_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (tenant, key) do update set cron = $3, every = $4, timezone = $5, from_at = $6, until_at = $7, catch_up = $8,
       notice = $9, next_at = case when r.paused_at is null then $10::timestamptz end, put_off_until = null, failures = 0, error = null,
       updated_at = clock_timestamp()
     returning ${COLUMNS}`;
const DUE = `select due.tenant, due.key from carillon.tenants t cross join lateral (
       select tenant, key, greatest(next_at, put_off_until) as turn from carillon.recurrences
       where tenant = t.id and next_at is not null and greatest(next_at, put_off_until) <= statement_timestamp()
       order by greatest(next_at, put_off_until) limit $1) due
     order by due.tenant, due.turn`;
const TAKE = `select ${COLUMNS}, statement_timestamp() as now from carillon.recurrences
  where tenant = $1 and key = $2 and greatest(next_at, put_off_until) <= statement_timestamp() and next_at is not null for update skip locked`;
const BEGIN_RUN = `insert into carillon.runs (tenant, key, tick, outcome, skipped) values ($1, $2, $3, 'skipped', 0) on conflict do nothing`;
const END_RUN = `with run as (
       update carillon.runs set outcome = $4, skipped = $5, notifications = $6, error = $7
       where tenant = $1 and key = $2 and tick = $3
     )
     update carillon.recurrences set next_at = $8, put_off_until = null, failures = 0, error = null
     where tenant = $1 and key = $2`;
const PUT_OFF = `update carillon.recurrences set put_off_until = clock_timestamp() + carillon.backoff(failures),
       failures = failures + 1, error = $3 where tenant = $1 and key = $2`;
const PAUSE = `update carillon.recurrences set paused_at = case when $3 then clock_timestamp() end,
       next_at = case when not $3 then $4::timestamptz end, put_off_until = null, failures = 0, error = null
     where tenant = $1 and key = $2`;
const NEXT = "select min(greatest(next_at, put_off_until)) as at from carillon.recurrences where next_at is not null";
const DELETE = "delete from carillon.recurrences where tenant = $1 and key = $2";

const from = new Date("2026-01-01T00:00:00Z");
const put = (every: string) => db.query(PUT, [1, "old", null, every, "UTC", from, null, "once", "{}", from]);
const seen = async () => findSchedule(db, 1, "old");

test("an old replica keeps, changes, pauses, puts off and ends a schedule that new ones see", async () => {
  assert.equal((await put("PT1H")).rows[0].every, "PT1H");
  assert.equal((await put("PT2H")).rows[0].every, "PT2H");
  assert.equal((await seen())?.every, "PT2H");
  await db.query(PUT_OFF, [1, "old", "no luck"]);
  assert.equal((await seen())?.error, "no luck");
  await db.query(PAUSE, [1, "old", true, null]);
  assert.notEqual((await seen())?.pausedAt, null);
  await db.query(PAUSE, [1, "old", false, from]);
  assert.deepEqual((await db.query(NEXT)).rows, [{ at: from }]);
  assert.equal((await db.query(DELETE, [1, "old"])).rowCount, 1);
  assert.equal(await seen(), undefined);
});

test("an old replica fires what is due, and never what a new one has in hand", async () => {
  await put("PT1H");
  assert.deepEqual((await db.query(DUE, [10])).rows, [{ tenant: 1, key: "old" }]);
  const other = await db.connect();
  await other.query("begin");
  await other.query("select from carillon.schedules where key = 'old' for update");
  assert.equal((await db.query(TAKE, [1, "old"])).rowCount, 0);
  await other.query("rollback");
  other.release();
  const [held] = (await db.query(TAKE, [1, "old"])).rows;
  assert.deepEqual(held.nextAt, from);
  await db.query(BEGIN_RUN, [1, "old", from]);
  const next = new Date(from.getTime() + 3_600_000);
  await db.query(END_RUN, [1, "old", from, "sent", 0, [], null, next]);
  assert.deepEqual((await seen())?.nextAt, next);
  const { rows } = await db.query("select outcome from carillon.runs");
  assert.deepEqual(rows, [{ outcome: "sent" }]);
});
