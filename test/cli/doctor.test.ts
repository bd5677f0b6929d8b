// carillon doctor: what is well is said to be, and what is not is named with what to do.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { findOpenTransactions } from "#store/examine.ts";
import { sandboxFor } from "../support/process.ts";
import { ADMIN_KEY, email, startService } from "../support/service.ts";

type Finding = { name: string; state: string; detail: string; advice?: string };

test("the doctor finds what is wrong with the database, the workers, the schema and the providers", async (t) => {
  const sandbox = await sandboxFor(t);
  const service = await startService({ roles: ["api", "worker", "callbacks", "scheduler", "keeper", "stream"] });
  t.after(() => service.stop());
  const env = { DATABASE_URL: service.databaseUrl, CARILLON_URL: service.url, CARILLON_API_KEY: ADMIN_KEY };
  const examine = async () => {
    const { code, stdout, stderr } = await sandbox.run(["doctor", "--json"], env);
    assert.equal(stderr, "");
    const { state, data } = JSON.parse(stdout);
    const found = new Map<string, Finding>(data.map((finding: Finding) => [finding.name, finding]));
    return { code, state, of: (name: string) => found.get(name) ?? assert.fail(`${name} is not in ${stdout}`) };
  };
  const well = await examine();
  const names = [
    "database",
    "clock",
    "transactions",
    "schema",
    "workers",
    "service",
    "/health writes",
    "providers",
    "queue",
  ];
  for (const name of [...names, "ledger"]) assert.equal(well.of(name).state, "ok", JSON.stringify(well.of(name)));
  assert.match(well.of("database").detail, /^PostgreSQL 1\d.*, \d+ of \d+ connections in use$/);
  assert.match(well.of("workers").detail, /^1 alive$/);
  assert.equal(well.code, 0);

  await service.ask("POST", "/v1/providers/dev/pause", { reason: "their outage" });
  await service.db.query("update carillon.workers set stopped_at = now()");
  await service.db.query("delete from carillon.migrations where version = 40");
  const ill = await examine();
  assert.deepEqual([ill.code, ill.state], [1, "fail"]);
  const workers = ill.of("workers");
  assert.deepEqual(workers, {
    name: "workers",
    state: "fail",
    detail: "none is alive: nothing is sent",
    advice: "start one with the role worker",
  });
  assert.match(ill.of("schema").detail, /^1 migrations are pending: 0040_brokers\.sql$/);
  assert.equal(ill.of("schema").advice, "carillon migrate");
  assert.deepEqual(
    [ill.of("provider dev").state, ill.of("provider dev").advice],
    ["warn", "carillon resume provider dev"],
  );
  const { stdout } = await sandbox.run(["doctor"], env);
  assert.match(stdout, /^fail {2}workers {9}none is alive: nothing is sent\n {22}→ start one with the role worker\n/m);
  assert.match(stdout, /\n\d to mend, \d to look at\n$/);
});

test("what waits and nobody takes is told", async (t) => {
  const sandbox = await sandboxFor(t);
  const service = await startService();
  t.after(() => service.stop());
  assert.equal((await service.ask("POST", "/v1/notifications", email())).status, 202);
  const env = { DATABASE_URL: service.databaseUrl, CARILLON_URL: service.url, CARILLON_API_KEY: ADMIN_KEY };
  const { code, stdout } = await sandbox.run(["doctor"], env);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^fail {2}queue {11}1 normal (email )?of default wait for .*, and no living worker takes them$/m,
  );
  // Without a key there is less to see, and that is said.
  const less = await sandbox.run(["doctor"], { ...env, CARILLON_API_KEY: undefined });
  assert.match(less.stdout, /^warn {2}key .*not looked at\n.*set CARILLON_API_KEY$/m);
});

test("a database that does not answer, or is not there, is a finding and no failure of the doctor", async (t) => {
  const sandbox = await sandboxFor(t);
  const nowhere = { CARILLON_URL: "http://127.0.0.1:9" };
  const none = await sandbox.run(["doctor"], nowhere);
  assert.equal(none.code, 1);
  assert.match(none.stdout, /^fail {2}database {8}there is none in .*\n.*CARILLON_HOME/m);
  assert.match(none.stdout, /^fail {2}service {9}no Carillon answers at http:\/\/127\.0\.0\.1:9$/m);
  const away = await sandbox.run(["doctor"], { ...nowhere, DATABASE_URL: "postgres://u:geheim@127.0.0.1:1/x" });
  assert.match(away.stdout, /^fail {2}database {8}the database does not answer: connect ECONNREFUSED 127\.0\.0\.1:1$/m);
  assert.ok(!(away.stdout + away.stderr).includes("geheim"));
});

test("a transaction that was left open is named by who has it", async (t) => {
  const service = await startService();
  t.after(() => service.stop());
  const idle = new pg.Client({ connectionString: service.databaseUrl, application_name: "somebody's psql" });
  await idle.connect();
  await idle.query("begin");
  await idle.query("select 1");
  const open = await findOpenTransactions(service.db, 0);
  const found = open.find(({ who }) => who.endsWith("(somebody's psql)"));
  assert.equal(found?.state, "idle in transaction", JSON.stringify(open));
  assert.deepEqual(await findOpenTransactions(service.db, 3_600_000), []);
  await idle.end();
});
