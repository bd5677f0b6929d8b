// GET /v1/house: who leads, the oldest open transaction, dead rows; for those who run the deployment.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { lead, resign } from "#store/leadership.ts";
import { ask, email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api", "keeper"] });
});
after(() => service.stop());

const house = () => ask(service, "/v1/house");

test("it says who leads, and of what nobody does now who did it last", async () => {
  const leaderOf = async (name: string) =>
    (await house()).leaders.find((one: { name: string }) => one.name === name) ?? undefined;
  const keeper = await until(() => leaderOf("keeper"));
  assert.equal(keeper.leads, true);
  assert.ok(keeper.holder.length > 0 && Date.parse(keeper.until) > Date.now() - 60_000);
  await lead(service.db, "sink bus", "a process", 60_000);
  assert.equal((await leaderOf("sink bus")).leads, true);
  await resign(service.db, "sink bus", "a process");
  const { leads, holder } = await leaderOf("sink bus");
  assert.deepEqual([leads, holder], [false, "a process"]);
  await service.ask("GET", "/health");
  assert.equal(await leaderOf("probe"), undefined, "which is a write of /health, and nobody's lead");
});

test("it names the oldest transaction that is open, until it has ended", async (t) => {
  const other = new pg.Client({ connectionString: service.databaseUrl, application_name: "somebody's report" });
  await other.connect();
  t.after(() => other.end());
  await other.query("begin");
  const { rows } = await other.query("select pg_backend_pid() as pid");
  const isTheirs = ({ who = "" } = {}) => who.startsWith(`process ${rows[0].pid} of `) && /somebody's report/.test(who);
  // Ours are open for a moment, and may have been open before it.
  const { state, ageMs } = await until(async () => {
    const { oldestTransaction } = await house();
    return isTheirs(oldestTransaction) ? oldestTransaction : undefined;
  });
  assert.equal(state, "idle in transaction");
  assert.ok(Number.isInteger(ageMs) && ageMs >= 0, `${ageMs}`);
  await other.query("rollback");
  assert.ok(!isTheirs((await house()).oldestTransaction));
});

test("it counts dead rows of the queue's tables, and says when they were taken away", async () => {
  const { db } = service;
  const ready = async () => (await house()).tables.find(({ name }: { name: string }) => name === "ready");
  await db.query("alter table carillon.ready set (autovacuum_enabled = false)");
  assert.deepEqual(
    (await house()).tables.map(({ name }: { name: string }) => name),
    ["ready", "later", "claims", "handoffs"],
  );
  assert.equal((await ready()).vacuumedAt, undefined);
  await service.ask("POST", "/v1/notifications", email());
  const other = await db.connect();
  await other.query("delete from carillon.ready");
  await other.query("select pg_stat_force_next_flush()");
  other.release();
  await until(async () => ((await ready()).deadRows > 0 ? true : undefined));
  await db.query("vacuum carillon.ready");
  const { deadRows, vacuumedAt } = await until(async () => {
    const table = await ready();
    return table.vacuumedAt === undefined ? undefined : table;
  });
  assert.equal(deadRows, 0);
  assert.ok(Date.parse(vacuumedAt) > 0);
});

test("it is for the default tenant's administrators", async () => {
  for (const key of [{ tenant: "stranger", scopes: ["admin"] }, { scopes: ["read"] }]) {
    const { status, body } = await service.ask("GET", "/v1/house", undefined, { key: await service.makeKey(key) });
    assert.deepEqual([status, body.code], [403, "FORBIDDEN"]);
    assert.equal(body.leaders, undefined);
  }
});
