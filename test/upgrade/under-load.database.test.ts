// The moment of migration: a database of 0.2.0 whose workers claim and settle, whose records are read, and whose users send in
// transactions of their own. Each takes the locks of the same tables in another order.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { chain } from "../support/chain.ts";
import { freshDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { released } from "./released.ts";

/** 0.2.0's own statements. */
async function oldQueue(db: pg.Client) {
  const { createPostgresQueue } = await import(join(dirname(released()), "..", "queue", "postgres.js"));
  return createPostgresQueue(db, () => performance.now());
}

const request = JSON.stringify({
  channel: "email",
  recipient: { email: "a@b.co" },
  content: { subject: "s", textBody: "t" },
});

/** What is done again and again, each on a connection of its own. */
const USES: { [name: string]: (db: pg.Client) => Promise<() => Promise<unknown>> } = {
  async work(db) {
    const queue = await oldQueue(db);
    return async () => {
      const attempts = await queue.claim(1, 2, 60_000);
      const settlement = { to: "sent" };
      await queue.settle(attempts.map((attempt: unknown) => ({ attempt, settlement, account: { outcome: "sent" } })));
    };
  },
  read: async (db) => () => db.query("select id, status from carillon.records order by id desc limit 5"),
  send: async (db) => () => db.query("select carillon.send($1)", [request]),
  async sendTwice(db) {
    return async () => {
      await db.query("begin");
      try {
        for (const key of ["a", "b"])
          await db.query("select carillon.send(jsonb_set($1, '{idempotencyKey}', to_jsonb($2::text)))", [request, key]);
      } finally {
        await db.query("commit");
      }
    };
  },
};

test("a database in full use is migrated, and nobody's statement fails for it", async (t) => {
  const database = await freshDatabase();
  t.after(() => database.drop());
  await migrate(database.url, chain(21));

  let isOver = false;
  const failures: string[] = [];
  const rounds: number[] = [];
  const uses = ["work", "work", "work", "read", "read", "send", "send", "sendTwice"];
  const loops = uses.map(async (name, n) => {
    const db = new pg.Client(database.url);
    await db.connect();
    const use = await USES[name]?.(db);
    rounds[n] = 0;
    while (!isOver) {
      await use?.().catch((error) => failures.push(`${name}: ${error.code} ${error.message}`));
      rounds[n] += 1;
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    await db.end();
  });
  const allHaveGoneOn = async (by: number) => {
    const from = [...rounds];
    await until(async () => (uses.every((_, n) => (rounds[n] ?? 0) >= (from[n] ?? 0) + by) ? true : undefined));
  };
  try {
    await allHaveGoneOn(5);
    assert.ok((await migrate(database.url, chain())).length > 0);
    await allHaveGoneOn(5);
  } finally {
    isOver = true;
    await Promise.all(loops);
  }
  assert.deepEqual(failures, []);
});
