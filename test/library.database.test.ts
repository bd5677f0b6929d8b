// Sending from inside a Node application.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { type Carillon, createCarillon, Problem } from "#index.ts";
import { type FreshDatabase, freshDatabase } from "./support/postgres.ts";
import { email } from "./support/service.ts";
import { until } from "./support/until.ts";

let database: FreshDatabase;
let pool: pg.Pool;
let carillon: Carillon;
before(async () => {
  database = await freshDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 5 });
  pool.on("error", () => {});
  carillon = createCarillon({ databaseUrl: database.url });
});
after(async () => {
  await carillon.close();
  await pool.end();
  await database.drop();
});

const exists = async (id: string) =>
  ((await pool.query("select from carillon.notifications where id = $1", [id])).rowCount ?? 0) > 0;

test("the first send brings the schema and stores the notification", async () => {
  const { notificationId, status, isReplay } = await carillon.send(email());
  assert.deepEqual([status, isReplay], ["queued", false]);
  assert.ok(await exists(notificationId));
});

test("a request that is not valid is a Problem with every fault", async () => {
  await assert.rejects(carillon.send({ channel: "sms", content: {} }), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.code, "VALIDATION_FAILED");
    assert.deepEqual(
      error.faults?.map(({ path }) => path),
      ["/recipient/phone", "/content/body"],
    );
    return true;
  });
});

test("values that are not JSON are refused, not bent", async () => {
  for (const odd of [10n, () => 1, Symbol("x"), Number.NaN, Number.POSITIVE_INFINITY, "a\0b", "\ud800"]) {
    await assert.rejects(carillon.send({ ...email(), metadata: { odd } }), Problem);
  }
  const undefinedIsAbsent = { ...email(), metadata: { here: 1, absent: undefined } };
  assert.ok(await exists((await carillon.send(undefinedIsAbsent)).notificationId));
});

test("sendBatch answers one by one, in order", async () => {
  const outcomes = await carillon.sendBatch([email(1), { channel: "sms", content: {} }, email(2)]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome instanceof Problem),
    [false, true, false],
  );
});

test("inside the caller's transaction: rolled back means never existed, committed means sent", async () => {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const gone = await carillon.send({ ...email(), idempotencyKey: "tx" }, { tx: client });
    const batch = await carillon.sendBatch([email(1), email(2)], { tx: client });
    assert.equal(await exists(gone.notificationId), false, "others do not see it yet");
    await client.query("rollback");
    for (const { notificationId } of [gone, ...(batch as { notificationId: string }[])]) {
      assert.equal(await exists(notificationId), false);
    }
    const left = await pool.query(
      `select (select count(*) from carillon.idempotency where key = 'tx') +
      (select count(*) from carillon.ready where id = $1) + (select count(*) from carillon.later where id = $1) as n`,
      [gone.notificationId],
    );
    assert.equal(Number(left.rows[0].n), 0);

    await client.query("begin");
    const kept = await carillon.send({ ...email(), idempotencyKey: "tx" }, { tx: client });
    assert.equal(kept.isReplay, false);
    await client.query("commit");
    assert.ok(await exists(kept.notificationId));
  } finally {
    client.release();
  }
});

test("an open transaction that holds an idempotency key delays nobody but those who want that key", async () => {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await carillon.send({ ...email(), idempotencyKey: "held" }, { tx: client });
    const outcomes = await Promise.allSettled([
      carillon.send(email(1)),
      carillon.send({ ...email(), idempotencyKey: "held" }),
      carillon.send({ ...email(2), idempotencyKey: "free" }),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    const refused = outcomes[1] as PromiseRejectedResult;
    assert.equal(refused.reason.code, "IDEMPOTENCY_IN_PROGRESS");
    await client.query("commit");
    assert.equal((await carillon.send({ ...email(), idempotencyKey: "held" })).isReplay, true);
  } finally {
    client.release();
  }
});

test("a tenant must exist, and its keys are its own", async () => {
  const stranger = createCarillon({ databaseUrl: database.url, tenant: "nobody" });
  await assert.rejects(stranger.send(email()), /there is no tenant nobody/);
  await stranger.close();
  await pool.query("insert into carillon.tenants (name) values ('acme')");
  const acme = createCarillon({ databaseUrl: database.url, tenant: "acme" });
  const ours = await carillon.send({ ...email(1), idempotencyKey: "shared name" });
  const theirs = await acme.send({ ...email(2), idempotencyKey: "shared name" });
  assert.notEqual(ours.notificationId, theirs.notificationId);
  await acme.close();
});

test("what could not be opened leaves nothing open", async () => {
  // Of several servers one is watched, by a connection that lasts.
  const several = database.url.replace(/host=([^&]+)/, "host=$1,$1");
  const watched = async () =>
    (await pool.query("select from pg_stat_activity where application_name = 'carillon watch'")).rowCount;
  await pool.query("alter table carillon.tenants rename to away");
  try {
    await assert.rejects(createCarillon({ databaseUrl: several }).send(email()), /carillon.tenants/);
  } finally {
    await pool.query("alter table carillon.away rename to tenants");
  }
  await until(async () => ((await watched()) === 0 ? true : undefined));
  const other = createCarillon({ databaseUrl: several });
  await other.send(email());
  await until(async () => ((await watched()) === 1 ? true : undefined));
  await other.close();
  await until(async () => ((await watched()) === 0 ? true : undefined));
});

test("a row that PostgreSQL refuses fails alone, its neighbours are stored", async () => {
  await pool.query(
    `alter table carillon.notifications add constraint no_thirteen check (request -> 'metadata' ->> 'n' is distinct from '13')`,
  );
  const sends = Array.from({ length: 40 }, (_, n) => carillon.send({ ...email(n), metadata: { n } }));
  const outcomes = await Promise.allSettled(sends);
  assert.deepEqual(
    outcomes.flatMap(({ status }, n) => (status === "rejected" ? [n] : [])),
    [13],
  );
  assert.equal((outcomes[13] as PromiseRejectedResult).reason.code, "INTERNAL");
  await pool.query("alter table carillon.notifications drop constraint no_thirteen");
});

test("after close, nothing is under way and nothing more is taken", async () => {
  const other = createCarillon({ databaseUrl: database.url });
  const sends = Array.from({ length: 100 }, (_, n) => other.send(email(n)));
  await sends[0];
  await other.close();
  const outcomes = await Promise.allSettled(sends);
  assert.ok(outcomes.every(({ status }) => status === "fulfilled"));
});
