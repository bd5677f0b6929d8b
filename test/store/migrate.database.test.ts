// Migrations: forward only, together or not at all.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { knownMigrations, migrate } from "#store/connection/migrate.ts";
import { freshDatabase } from "../support/postgres.ts";

async function withDatabase(
  run: (url: string, query: (sql: string) => Promise<pg.QueryResult>) => Promise<void>,
): Promise<void> {
  const database = await freshDatabase();
  const client = new pg.Client(database.url);
  await client.connect();
  try {
    await run(database.url, (sql) => client.query(sql));
  } finally {
    await client.end();
    await database.drop();
  }
}

test("migrations are numbered from 1 without a gap", () => {
  assert.deepEqual(
    knownMigrations().map(({ version }) => version),
    knownMigrations().map((_, index) => index + 1),
  );
});

test("ten replicas that start at once migrate once", () =>
  withDatabase(async (url, query) => {
    const results = await Promise.all(Array.from({ length: 10 }, () => migrate(url)));
    assert.deepEqual(
      results.map(({ length }) => length).sort((a, b) => a - b),
      [...Array(9).fill(0), knownMigrations().length],
    );
    const { rows } = await query("select version from carillon.migrations order by version");
    assert.deepEqual(
      rows.map(({ version }) => version),
      knownMigrations().map(({ version }) => version),
    );
  }));

test("everything is in the schema carillon", () =>
  withDatabase(async (url, query) => {
    const outside = `select relname from pg_class where relnamespace = 'public'::regnamespace
      union all select proname from pg_proc where pronamespace = 'public'::regnamespace
      union all select nspname from pg_namespace where nspname not in ('carillon', 'public', 'information_schema') and nspname not like 'pg\\_%'`;
    await migrate(url);
    assert.deepEqual((await query(outside)).rows, []);
  }));

test("a schema newer than the code is refused and left alone", () =>
  withDatabase(async (url, query) => {
    await migrate(url);
    await query("insert into carillon.migrations (version, name) values (9999, 'from the future')");
    await assert.rejects(migrate(url), /schema version 9999, this Carillon knows versions up to \d+/);
  }));

test("a migration that fails leaves the schema as it was", () =>
  withDatabase(async (url, query) => {
    await migrate(url);
    const next = { version: 5000, name: "good", sql: "create table carillon.half (x int)" };
    const bad = { version: 5001, name: "bad", sql: "create table carillon.half (x int)" };
    await assert.rejects(migrate(url, [...knownMigrations(), next, bad]), /already exists/);
    assert.equal((await query("select to_regclass('carillon.half') as half")).rows[0].half, null);
    assert.deepEqual(await migrate(url), []);
  }));

test("partitions are made for the weeks ahead, once, and an id far off its time has a place too", () =>
  withDatabase(async (url, query) => {
    await migrate(url);
    const count = async () =>
      (await query("select count(*)::int as n from pg_inherits where inhparent = 'carillon.notifications'::regclass"))
        .rows[0].n;
    const made = await count();
    assert.ok(made >= 10, `${made} partitions`);
    assert.equal((await query("select carillon.make_partitions(now(), now() + interval '30 days') as n")).rows[0].n, 0);
    assert.ok((await query("select carillon.make_partitions(now(), now() + interval '100 days') as n")).rows[0].n > 0);
    await query(`select carillon.accept('[{"i":"00000000-0000-7000-8000-000000000000","t":1,"c":"console","p":2,"r":{}},
      {"i":"ffffffff-ffff-7fff-bfff-ffffffffffff","t":1,"c":"console","p":2,"r":{}}]', false)`);
    const { rows } = await query(
      "select relname as place from carillon.notifications n join pg_class c on c.oid = n.tableoid",
    );
    assert.deepEqual(
      rows.map(({ place }) => place),
      ["notifications_default", "notifications_default"],
    );
    await query(
      `select carillon.accept(json_build_array(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console', 'p', 2, 'r', '{}'::json)), false)`,
    );
    const placed = await query("select count(*)::int as n from only carillon.notifications_default");
    assert.equal(placed.rows[0].n, 2);
  }));
