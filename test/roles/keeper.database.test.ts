// The keeper's house: however much there is to do, and whatever stands in the way.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { choresOf } from "#wiring/chores.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

// Keeps one server for all tests of this file.
let keptAlive: FreshDatabase;
before(async () => {
  keptAlive = await freshDatabase();
});
after(() => keptAlive.drop());

let database: FreshDatabase;
let db: pg.Pool;
let keeper: Service | undefined;
beforeEach(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  db = new pg.Pool({ connectionString: database.url });
  db.on("error", () => {});
});
afterEach(async () => {
  await keeper?.stop();
  keeper = undefined;
  await db.end();
  await database.drop();
});

const startKeeper = async () => {
  keeper = await startService({ databaseUrl: database.url, roles: ["api", "keeper"], sweepMs: 50, retentionDays: 90 });
  return keeper;
};
const one = async (sql: string, values: unknown[] = []) => (await db.query(sql, values)).rows[0];
const count = async (table: string): Promise<number> =>
  (await one(`select count(*)::int as n from carillon.${table}`)).n;
const isGone = async (table: string) => (await one("select to_regclass('carillon.' || $1) as it", [table])).it === null;

/** Open until the test is over. */
async function openTransaction(): Promise<pg.PoolClient & AsyncDisposable> {
  const client = await db.connect();
  await client.query("begin");
  return Object.assign(client, { [Symbol.asyncDispose]: async () => client.release(true) });
}

/** A partition for that week, and `rows` notifications in it that were sent then. Answers with the name of the week. */
async function fillWeek(weeksAgo: number, rows: number): Promise<string> {
  const { at, week } = await one(
    `select at, to_char(date_trunc('week', at at time zone 'UTC'), 'YYYYMMDD') as week,
       carillon.make_partitions(at, at) from (select now() - $1 * interval '7 days' as at) x`,
    [weeksAgo],
  );
  await fill(at, rows);
  return week;
}

async function fill(at: Date, rows: number): Promise<void> {
  await db.query(
    `with stored as (
       insert into carillon.notifications (tenant, id, seq, channel, priority, accepted_at, request)
       select 1, carillon.first_id($1::timestamptz + n * interval '1 ms'), nextval('carillon.acceptance'), 'console', 2, $1,
         '{"channel":"console","recipient":{},"content":{"textBody":"Hello"}}'
       from generate_series(1, $2) as n returning tenant, id
     )
     insert into carillon.events (notification_id, tenant, at, type, from_status, to_status)
     select id, tenant, $1, 'attempt', 'processing', 'sent' from stored`,
    [at, rows],
  );
}

/** The oldest of the partition wait from now on. Answers with the first of them. */
async function waitIn(part: string, count = 1): Promise<string> {
  const { id } = await one(
    `with waiting as (
       insert into carillon.later (seq, due_at, priority, tenant, id)
       select seq, '2099-01-01', priority, tenant, id from carillon.notifications_${part} order by id limit $1 returning id
     )
     select id from waiting order by id limit 1`,
    [count],
  );
  return id;
}

/** No statement may delete more than a thousand rows of it. */
async function forbidLargeDeletes(...tables: string[]): Promise<void> {
  await db.query(`create or replace function few_at_once() returns trigger language plpgsql as $$
    begin
      if (select count(*) from gone) > 1000 then raise exception 'too many at once'; end if;
      return null;
    end $$`);
  for (const table of tables) {
    await db.query(`create trigger few_at_once after delete on carillon.${table} referencing old table as gone
      for each statement execute function few_at_once()`);
  }
}

/** Not one row of it may be deleted. */
async function forbidDeletes(table: string): Promise<void> {
  await db.query(`create or replace function none_at_all() returns trigger language plpgsql as $$
    begin raise exception 'row by row'; end $$`);
  await db.query(
    `create trigger none_at_all before delete on carillon.${table} for each row execute function none_at_all()`,
  );
}

test("an old week is dropped although something of it waits: what waits moves on, with its history, and is still sent", async () => {
  const waiting = await fillWeek(20, 2_500);
  const over = await fillWeek(19, 10);
  const young = await fillWeek(10, 10);
  const waiter = await waitIn(waiting);
  await forbidDeletes(`notifications_${waiting}`);
  await forbidDeletes(`events_${waiting}`);

  await startKeeper();
  for (const week of [waiting, over]) {
    await until(async () =>
      (await isGone(`notifications_${week}`)) && (await isGone(`events_${week}`)) ? true : undefined,
    );
  }
  assert.equal(await count(`notifications_${young}`), 10);
  const { body } = (await keeper?.ask("GET", `/v1/notifications/${waiter}`)) ?? assert.fail();
  assert.equal(body.status, "pending");
  assert.deepEqual(
    body.events.map(({ type }: { type: string }) => type),
    ["accepted", "attempt"],
  );
  assert.deepEqual([await count("notifications_default"), await count("events_default")], [1, 1]);

  await db.query("update carillon.later set due_at = now()");
  await keeper?.stop();
  keeper = await startService({ databaseUrl: database.url, roles: ["api", "worker"], retentionDays: 90 });
  await until(async () => one("select from carillon.records where id = $1 and status = 'sent'", [waiter]));
  await keeper.stop();
  await startKeeper();
  await until(async () => ((await count("notifications_default")) === 0 ? true : undefined));
});

test("of a week of which too many wait to move on, and of the default partition, what is over goes in small steps", async () => {
  const waiting = await fillWeek(20, 3_600);
  await fill(new Date("2001-01-01"), 1_200);
  await waitIn(waiting, 1_100);
  await waitIn("default");
  await forbidLargeDeletes("notifications", "events", `notifications_${waiting}`, `events_${waiting}`);
  await forbidLargeDeletes("notifications_default", "events_default");

  await startKeeper();
  const left = async () => [
    await count(`notifications_${waiting}`),
    await count(`events_${waiting}`),
    await count("notifications_default"),
    await count("events_default"),
  ];
  await until(async () => ((await left()).join() === "1100,1100,1,1" ? true : undefined));
  await db.query("delete from carillon.later where seq in (select seq from carillon.later limit 500)");
  await keeper?.stop();
  await startKeeper();
  await until(async () => ((await isGone(`notifications_${waiting}`)) ? true : undefined));
});

test("a week or a chore that fails keeps nothing else from being done, and is tried again soon", async () => {
  const stubborn = await fillWeek(20, 10);
  const over = await fillWeek(19, 10);
  await waitIn(stubborn);
  await db.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not this week'; end $$`,
  );
  await db.query(
    `create trigger refuse before insert on carillon.notifications_default for each row execute function refuse()`,
  );
  await db.query(`insert into carillon.reminders (tenant, key, at, timezone, scopes, notice, offsets, offsets_from)
    values (1, 'old', '2001-01-01', 'UTC', '{}', '{}', '{}', 'none')`);
  await db.query("alter table carillon.runs rename to runs_away");
  await db.query(`insert into carillon.devices (tenant, token, user_id, platform, dead_at)
    values (1, 't', 'u', 'ios', now() - interval '1 year')`);

  await startKeeper();
  await until(async () => ((await isGone(`notifications_${over}`)) ? true : undefined));
  await until(async () => ((await count("devices")) === 0 ? true : undefined));
  assert.equal(await count(`notifications_${stubborn}`), 10);

  await db.query(`drop trigger refuse on carillon.notifications_default`);
  await db.query("alter table carillon.runs_away rename to runs");
  await until(async () => ((await isGone(`notifications_${stubborn}`)) ? true : undefined));
  await until(async () => ((await count("reminders")) === 0 ? true : undefined));
});

test("taking over leases waits for no chore; one that hangs is cut off and counted, while the others are done", async () => {
  await using reader = await openTransaction();
  await reader.query("lock table carillon.devices in access exclusive mode");
  const { ask } = await startKeeper();
  const stuck = () =>
    until(async () =>
      one(`select pid, query_start from pg_stat_activity where datname = current_database()
        and application_name like 'carillon%' and wait_event_type = 'Lock' and query like '%carillon.devices%'`),
    );
  const before = await stuck();
  const id = await waitIn(await fillWeek(0, 1));
  await db.query(`with taken as (delete from carillon.later returning *)
    insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done, seqs, priorities, tenants, ids,
      attempts, expiries)
    select nextval('carillon.lease_token'), 0, now() - interval '1 min', now() - interval '1 s', seq, seq, '0', array[seq],
      array[priority], array[tenant], array[id], array[1::smallint], array[null::timestamptz] from taken`);
  await until(async () => one("select from carillon.events where notification_id = $1 and outcome = 'lost'", [id]));
  assert.deepEqual(await stuck(), before, "the chore still waits");

  const figures = await until(async () => {
    const { body } = await ask("GET", "/metrics");
    return /^carillon_chore_failures_total\{chore="devices"\} 1$/m.test(body) ? String(body) : undefined;
  });
  const done = [...figures.matchAll(/^carillon_chore_last_success_timestamp_seconds\{chore="(.+)"\}/gm)].map(
    ([, name]) => name,
  );
  const queue = { expire: async () => 0, bringBack: async () => 0 };
  const all = choresOf({ queue, sweepMs: 1, silentMs: 1, retentionDays: 1, auditDays: 1, feedDays: 7 }).map(
    ({ name }) => name,
  );
  assert.deepEqual(done.sort(), all.filter((name) => name !== "devices").sort());
  assert.match(figures, /^carillon_chore_duration_seconds_count\{chore="expire"\} [1-9]/m);
});

test("an open read keeps partitions from being made and dropped, and nobody's send waits for that", async () => {
  const old = await fillWeek(19, 10);
  const { week: next } = await one(
    "select to_char(date_trunc('week', now() at time zone 'UTC') + interval '8 weeks', 'YYYYMMDD') as week",
  );
  await db.query(`drop table carillon.notifications_${next}, carillon.events_${next}`);
  await using reader = await openTransaction();
  await reader.query("select count(*) from carillon.notifications, carillon.events");
  const { ask } = await startKeeper();

  // A chore that failed has logged nothing here, but its transaction was undone.
  const undone = async () =>
    Number((await one("select xact_rollback as n from pg_stat_database where datname = current_database()")).n);
  const before = await undone();
  await until(async () => {
    const { status, body } = await ask("POST", "/v1/notifications", email());
    assert.equal(status, 202, JSON.stringify(body));
    return (await undone()) >= before + 4 ? true : undefined;
  });
  assert.deepEqual([await isGone(`notifications_${old}`), await isGone(`notifications_${next}`)], [false, true]);
  await reader.query("rollback");
  await until(async () => ((await isGone(`notifications_${old}`)) ? true : undefined));
  await until(async () => ((await isGone(`events_${next}`)) ? undefined : true));
});
