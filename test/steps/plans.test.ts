// Plans through crashes, and with several processes at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { makeDead } from "../support/dead-letters.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type ServiceProcess, sandboxFor } from "../support/process.ts";
import { until } from "../support/until.ts";

test("a plan is carried out through kill -9, by two processes at once, and none is sent again twice", {
  timeout: 180_000,
}, async (t) => {
  const database = await freshDatabase();
  const sandbox = await sandboxFor(t);
  // Nobody claims: what was sent again stays where it is.
  const env = { DATABASE_URL: database.url, CARILLON_ROLES: "api,scheduler" };
  const first = await sandbox.start(env);
  const db = new pg.Client({ connectionString: database.url });
  await db.connect();
  t.after(async () => {
    await db.end();
    await database.drop();
  });
  const ids = await makeDead(db, 2_500);
  const done = async (service: ServiceProcess, path: string) =>
    (await service.ask("GET", `/v1/plans/${path}`)).body.progress.done;

  const { body: plan } = await first.ask("POST", "/v1/plans", { kind: "requeue", filter: {} });
  assert.equal(plan.count, ids.length);
  const { rowCount } = await db.query("select from carillon.plan_pages");
  assert.equal(rowCount, 3, "a row for a thousand of them");
  await first.ask("POST", `/v1/plans/${plan.planId}/apply`, { rate: 500 });
  await until(async () => ((await done(first, plan.planId)) >= 250 ? true : undefined));
  await first.end("SIGKILL");

  const others = await Promise.all([sandbox.start(env), sandbox.start(env)]);
  const [one, two] = others as [ServiceProcess, ServiceProcess];
  await until(async () => ((await done(one, plan.planId)) >= 1_000 ? true : undefined));
  // The other goes on alone.
  await one.end("SIGKILL");
  const ended = await until(async () => {
    const { body } = await two.ask("GET", `/v1/plans/${plan.planId}`);
    return body.finishedAt ? body : undefined;
  });
  assert.equal(ended.state, "done");
  assert.deepEqual(ended.progress, { done: ids.length, skipped: {}, remaining: 0 });
  const { rows } = await db.query(
    `select count(*)::int as events, count(distinct notification_id)::int as notifications,
       (select count(*)::int from carillon.ready) as ready
     from carillon.events where type = 'retried'`,
  );
  assert.deepEqual(rows[0], { events: ids.length, notifications: ids.length, ready: ids.length });
});

test("a requeue whose process is killed in the middle is a plan, with which the scheduler goes on, and none is sent again twice", {
  timeout: 180_000,
}, async (t) => {
  const database = await freshDatabase();
  const sandbox = await sandboxFor(t);
  const first = await sandbox.start({ DATABASE_URL: database.url, CARILLON_ROLES: "api" });
  const db = new pg.Client({ connectionString: database.url });
  const holder = new pg.Client({ connectionString: database.url });
  await db.connect();
  await holder.connect();
  t.after(async () => {
    await db.end();
    await holder.end();
    await database.drop();
  });
  const ids = await makeDead(db, 2_500);
  // The last batch waits for this one.
  await holder.query("begin");
  await holder.query("select from carillon.notifications where id = $1 for update", [ids.toSorted()[0]]);
  const asked = first.ask("POST", "/v1/dead-letters/requeue", { filter: {}, limit: 2_500 }).catch(() => "cut off");
  const plan = await until(async () => {
    const { body } = await first.ask("GET", "/v1/plans");
    return body.data[0]?.progress.done === 2_000 ? body.data[0] : undefined;
  });
  assert.deepEqual([plan.kind, plan.state, plan.count], ["retry", "applying", 2_500]);
  await first.end("SIGKILL");
  assert.equal(await asked, "cut off");
  await holder.query("rollback");

  const second = await sandbox.start({ DATABASE_URL: database.url, CARILLON_ROLES: "api,scheduler" });
  const ended = await until(async () => {
    const { body } = await second.ask("GET", `/v1/plans/${plan.planId}`);
    return body.finishedAt ? body : undefined;
  });
  assert.deepEqual([ended.state, ended.progress], ["done", { done: 2_500, skipped: {}, remaining: 0 }]);
  const { rows } = await db.query(
    "select count(*)::int as events, count(distinct notification_id)::int as notifications from carillon.events where type = 'retried'",
  );
  assert.deepEqual(rows[0], { events: 2_500, notifications: 2_500 });
  const { rows: lines } = await db.query(
    "select action, after from carillon.audit where action in ('dead-letters.requeue', 'plan.finish') order by seq",
  );
  assert.deepEqual(lines, [
    { action: "dead-letters.requeue", after: { filter: {}, plan: plan.planId, requeued: 2_000 } },
    { action: "plan.finish", after: { state: "done", done: 2_500, skipped: {} } },
  ]);
});
