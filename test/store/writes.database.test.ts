// A database that answers and stores nothing: a full disk, a standby that is away.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { isOutage, openDatabase } from "#store/connection/database.ts";
import { type ControllableServer, controllableServer } from "../support/postgres.ts";
import { email, type Service, startService } from "../support/service.ts";
import { throughSilentProxy } from "../support/silent-proxy.ts";
import { until } from "../support/until.ts";

let server: ControllableServer;
let service: Service;
before(async () => {
  server = await controllableServer();
  service = await startService({ databaseUrl: server.url });
});
after(async () => {
  await service.stop();
  await server.remove();
});

const ready = async () => (await service.ask("GET", "/ready", undefined, { key: null })).body;
const send = async () => (await service.ask("POST", "/v1/notifications", email())).status;

test("a process whose sends are refused for a full disk is not ready, and is again once they are stored", async () => {
  assert.deepEqual(await ready(), { ready: true });
  await service.db.query(`create function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    create trigger full_disk before insert on carillon.notifications execute function full_disk()`);
  assert.equal(await send(), 503);
  assert.deepEqual(await ready(), { ready: false, reason: "the database stores nothing" });
  const { status, body } = await service.ask("GET", "/health", undefined, { key: null });
  assert.equal(status, 503);
  assert.deepEqual(
    body.checks.map(({ name, healthy }: { name: string; healthy: boolean }) => [name, healthy]),
    [
      ["database", true],
      ["writes", false],
      ["queue", true],
      ["workers", true],
      ["callbacks", true],
      ["feed", true],
      ["clock", true],
    ],
  );
  await service.db.query("drop trigger full_disk on carillon.notifications");
  assert.equal(await send(), 202);
  assert.deepEqual(await ready(), { ready: true });
});

test("a process that nobody sends to finds out by itself that nothing is stored", async () => {
  await service.db.query("alter system set default_transaction_read_only = on");
  await service.db.query("select pg_reload_conf()");
  await until(async () => ((await ready()).reason === "the database stores nothing" ? true : undefined));
  await writable("alter system reset default_transaction_read_only");
  await until(async () => ((await ready()).ready ? true : undefined));
});

test("while commits wait for a standby that is away, no more sessions are opened than twice the connections", async (t) => {
  const database = openDatabase({
    url: server.url,
    acceptConnections: 2,
    connections: 1,
    answerMs: 300,
    onError: () => {},
  });
  t.after(database.close);
  await database.own.query("create table if not exists written (n int)");
  await writable("alter system set synchronous_standby_names = 'nobody'");
  const waiting = async () => {
    const { rows } = await service.db.query(
      "select count(*)::int as n from pg_stat_activity where application_name = 'carillon accept' and wait_event = 'SyncRep'",
    );
    return rows[0].n as number;
  };
  const write = () => database.accept.query("insert into written values (1)");
  // Commits wait once the checkpointer has heard of it.
  await until(() =>
    write().then(
      () => undefined,
      (error) => isOutage(error) || undefined,
    ),
  );
  for (let n = 0; n < 6; n++) await Promise.all([1, 2].map(() => assert.rejects(write(), isOutage)));
  const sessions = await waiting();
  assert.ok(sessions >= 2 && sessions <= 4, `${sessions} sessions`);

  await writable("alter system reset synchronous_standby_names");
  await until(async () => ((await waiting()) === 0 ? true : undefined));
  await database.accept.query("insert into written values (3)");
});

test("connections that the network lost are not waited for, however many were given up", async (t) => {
  const { url, proxy } = await throughSilentProxy(server.url);
  t.after(proxy.close);
  const database = openDatabase({ url, acceptConnections: 2, connections: 1, answerMs: 500, onError: () => {} });
  t.after(database.close);
  for (let n = 0; n < 3; n++) {
    await database.authenticate.query("select 1");
    const all = Array.from({ length: 2 }, () => database.authenticate.query("select pg_backend_pid() as pid"));
    const pids = (await Promise.all(all)).map(({ rows }) => rows[0].pid);
    assert.equal(new Set(pids).size, 2, "all connections of the pool are open");
    proxy.silence();
    const lost = Array.from({ length: 2 }, () => database.authenticate.query("select 1"));
    await Promise.all(lost.map((one) => assert.rejects(one, isOutage)));
  }
  assert.equal((await database.authenticate.query("select 1 as n")).rows[0].n, 1);
});

/** On a connection of its own that writes and commits whatever the server was told. */
async function writable(statement: string): Promise<void> {
  const client = new pg.Client({
    connectionString: server.url,
    options: "-c default_transaction_read_only=off -c synchronous_commit=local",
  });
  await client.connect();
  await client.query(statement);
  await client.query("select pg_reload_conf()");
  await client.end();
}
