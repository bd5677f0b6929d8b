// Connections that break at an inconvenient moment: whoever uses one is told, and the process goes on.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import type pg from "pg";
import { type Database, inTransaction, isOutage, openDatabase } from "#store/connection/database.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";

let fresh: FreshDatabase;
before(async () => {
  fresh = await freshDatabase();
});
after(() => fresh.drop());

const open = (url: string): Database => openDatabase({ url, acceptConnections: 1, connections: 1, onError: () => {} });

test("a connection that breaks between two statements of a transaction fails that transaction, and nothing else", async (t) => {
  const database = open(fresh.url);
  t.after(database.close);
  const broken = inTransaction(database.own, async (tx) => {
    const { rows } = await tx.query("select pg_backend_pid() as pid");
    const isOver = new Promise((resolve) => (tx as pg.PoolClient).once("end", resolve));
    await database.small.query("select pg_terminate_backend($1, 10000)", [rows[0].pid]);
    await isOver;
    await tx.query("select 1");
  });
  await assert.rejects(broken, isOutage);
  assert.equal((await database.own.query("select 1 as one")).rows[0].one, 1);
});

/** Leads to the database until the first statement comes, and does this instead then. */
async function untilSetUp(t: { after(end: () => unknown): void }, instead: (near: Socket, far: Socket) => void) {
  const directory = decodeURIComponent(/[?&]host=([^&]+)/.exec(fresh.url)?.[1] ?? "");
  const server = createServer((near) => {
    const far = connect(`${directory}/.s.PGSQL.5432`);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => undefined).on("close", () => other.destroy());
    }
    far.pipe(near);
    near.on("data", (bytes) => (bytes.includes("set_config") ? instead(near, far) : far.write(bytes)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return fresh.url.replace(/@[^/]*\//, `@127.0.0.1:${port}/`).replace(/\?.*/, "");
}

for (const [how, instead] of [
  ["breaks", (near: Socket) => near.resetAndDestroy()],
  ["is closed", (near: Socket) => near.end()],
  ["falls silent", (near: Socket) => near.pause()],
] as const) {
  test(`a connection that ${how} while it is being set up fails whoever wanted it, and nothing else`, async (t) => {
    const database = open(await untilSetUp(t, instead));
    t.after(database.close);
    await assert.rejects(database.own.query("select 1"), isOutage);
  });
}
