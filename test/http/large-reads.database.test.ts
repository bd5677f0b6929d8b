// A tenant that reads as much as it can keeps nobody else waiting. A lock on the events stands for a record so large that
// reading it takes for ever.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { openDatabase } from "#store/connection/database.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let reader: string;
before(async () => {
  service = await startService();
  reader = await service.makeKey({ tenant: "reader", scopes: ["read"] });
});
after(() => service.stop());

const ledger = (key: string) => service.ask("GET", "/v1/ledger", undefined, { key });
const large = async (): Promise<{ pid: number; waits: boolean }[]> => {
  const { rows } = await service.db.query(
    `select pid, wait_event_type = 'Lock' as waits from pg_stat_activity
     where datname = current_database() and application_name = 'carillon large' and state = 'active'`,
  );
  return rows;
};

/** Whoever reads events waits until the answer is called. */
async function stuckEvents(t: TestContext): Promise<() => Promise<void>> {
  const holder = await service.db.connect();
  await holder.query("begin; lock table carillon.events in access exclusive mode");
  let isHeld = true;
  const release = async () => {
    if (!isHeld) return;
    isHeld = false;
    await holder.query("rollback");
    holder.release();
  };
  t.after(release);
  return release;
}

test("forty readers of a ledger keep nobody's key, send or read waiting, and have two connections between them", async (t) => {
  const keys = await Promise.all(["one", "two"].map((tenant) => service.makeKey({ tenant, scopes: ["send", "read"] })));
  const release = await stuckEvents(t);
  const readers = Array.from({ length: 40 }, () => ledger(reader));
  await until(async () => ((await large()).filter(({ waits }) => waits).length === 2 ? true : undefined));

  for (const key of keys) {
    const sent = await service.ask("POST", "/v1/notifications", email(), { key });
    assert.equal(sent.status, 202);
    for (const path of ["/v1/queue", "/v1/schedules", "/v1/templates", "/v1/inbox/ada"]) {
      assert.equal((await service.ask("GET", path, undefined, { key })).status, 200, path);
    }
  }
  for (const path of ["/ready", "/health"]) assert.equal((await service.ask("GET", path)).status, 200, path);
  assert.equal((await large()).length, 2);

  await release();
  // On a busy machine some have waited too long for their turn.
  for (const { status, body } of await Promise.all(readers)) {
    assert.ok(status === 200 ? body.balanced : body.code === "OVERLOADED", JSON.stringify(body));
  }
});

test("beyond what may wait for one tenant the answer is 429 at once, for that tenant alone", async (t) => {
  const key = await service.makeKey({ tenant: "three", scopes: ["read"] });
  const release = await stuckEvents(t);
  const readers = Array.from({ length: 150 }, () => ledger(reader));
  const refused = await Promise.any(
    readers.map((one) => one.then((answer) => (answer.status === 429 ? answer : Promise.reject(answer)))),
  );
  assert.equal(refused.body.code, "TOO_MANY_REQUESTS");
  assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
  assert.equal((await service.ask("GET", "/v1/queue", undefined, { key })).status, 200);
  await release();
  for (const { status, body } of await Promise.all(readers)) {
    assert.ok(status === 200 || ["TOO_MANY_REQUESTS", "OVERLOADED"].includes(body.code), JSON.stringify(body));
  }
});

test("a read for which the database has no more time is told so, and only a read", async (t) => {
  await stuckEvents(t);
  const reading = ledger(reader);
  const [{ pid } = { pid: 0 }] = await until(async () => {
    const found = (await large()).filter(({ waits }) => waits);
    return found.length > 0 ? found : undefined;
  });
  // What the server's own limit does.
  await service.db.query("select pg_cancel_backend($1)", [pid]);
  const { status, headers, body } = await reading;
  assert.deepEqual([status, body.code], [503, "READ_TOO_SLOW"]);
  assert.match(headers.get("retry-after") ?? "", /^\d+$/);
});

test("the server ends a large read before we would give its connection up", async (t) => {
  const options = { url: service.databaseUrl, acceptConnections: 1, connections: 1, onError: () => {} };
  const database = openDatabase(options);
  t.after(database.close);
  const { rows } = await database.large.query(
    "select extract(epoch from current_setting('statement_timeout')::interval)::int as seconds",
  );
  assert.ok(rows[0].seconds < 8, rows[0].seconds);
});

test("each kind of work shows its connections among the metrics", async () => {
  const { body } = await service.ask("GET", "/metrics", undefined, { key: null });
  for (const pool of ["accept", "work", "authenticate", "own", "house", "small", "large"]) {
    assert.match(body, new RegExp(`carillon_pool_connections\\{pool="${pool}",state="waiting"\\} 0`));
  }
});
