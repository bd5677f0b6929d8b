// A new database gets the whole schema at once, one that exists goes the numbered way: both have the same.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { knownMigrations } from "#store/connection/migrations.ts";
import { chain } from "../support/chain.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { schemaOf } from "../support/schema-of.ts";

const { numbered, whole, frozen } = knownMigrations();
const opened: { database: FreshDatabase; db: pg.Client }[] = [];
async function open() {
  const database = await freshDatabase();
  const db = new pg.Client(database.url);
  await db.connect();
  opened.push({ database, db });
  return { url: database.url, db };
}
let atOnce: Awaited<ReturnType<typeof open>>;
let stepwise: Awaited<ReturnType<typeof open>>;
before(async () => {
  [atOnce, stepwise] = [await open(), await open()];
  await migrate(atOnce.url);
  await migrate(stepwise.url, chain());
});
after(async () => {
  for (const { database, db } of opened) {
    await db.end();
    await database.drop();
  }
});

const differences = (one: string[], other: string[]) => one.filter((line) => !other.includes(line));

test("the whole schema is what the numbered migrations bring: tables, rules, indexes, functions, views, triggers, rows", async () => {
  assert.ok(whole, "there is one file for new databases");
  const [made, migrated] = [await schemaOf(atOnce.db), await schemaOf(stepwise.db)];
  assert.ok(made.length > 500, `${made.length} lines compared`);
  assert.deepEqual(differences(migrated, made), [], "missing or other in the whole schema");
  assert.deepEqual(differences(made, migrated), [], "not in the numbered migrations");
});

test("the smallest difference is seen", async () => {
  const { db } = stepwise;
  const changes = [
    "alter table carillon.runs alter skipped set default 0",
    "alter table carillon.ready set (fillfactor = 90)",
    "create or replace function carillon.keep_keys() returns interval language sql stable as $$ select interval '1 day' $$",
    "comment on table carillon.runs is 'a comment'",
    "drop index carillon.receipts_by_age",
    "grant select on carillon.runs to public",
    "insert into carillon.secrets (name, secret) values ('another', sha256(''))",
    "select nextval('carillon.lock_tokens')",
  ];
  const before = await schemaOf(db);
  for (const change of changes) {
    await db.query("begin");
    await db.query(change);
    assert.notDeepEqual(await schemaOf(db), before, change);
    await db.query("rollback");
    // Drawn numbers stay drawn.
    if (change.includes("nextval")) await db.query("alter sequence carillon.lock_tokens restart");
  }
});

test("a database that was made at once goes on with later migrations, and to begin with it is up to date", async () => {
  const { url, db } = atOnce;
  assert.deepEqual(await migrate(url), []);
  assert.deepEqual(await migrate(url, chain()), [], "also for whoever knows the numbered files only");
  const next = {
    version: (numbered.at(-1)?.version ?? 0) + 1,
    name: "next",
    sql: "create table carillon.next (x int)",
  };
  assert.equal((await migrate(url, { numbered: [...numbered, next], frozen })).length, 1);
  assert.equal((await db.query("select from carillon.next")).rowCount, 0);
});
