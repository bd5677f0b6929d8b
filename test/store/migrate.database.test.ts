// Migrations: forward only, together or not at all, and never edited once they were applied or released.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { checksumOf, fileOf, knownMigrations, type Migrations, refuseEdited } from "#store/connection/migrations.ts";
import { chain } from "../support/chain.ts";
import { freshDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

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

const { numbered, whole } = knownMigrations();
/** With this file's text changed. */
const edited = (known: Migrations, version: number): Migrations => ({
  ...known,
  numbered: known.numbered.map((one) => (one.version === version ? { ...one, sql: `${one.sql}-- Hm.\n` } : one)),
});

test("migrations are numbered from 1 without a gap", () => {
  assert.deepEqual(
    numbered.map(({ version }) => version),
    numbered.map((_, index) => index + 1),
  );
});

test("a released migration is as it was released: what is to change goes into a new one", () => {
  const known = knownMigrations();
  assert.ok(known.frozen.size >= 21, "those of 0.2.0 at least");
  // The whole schema may give way to one of a later number.
  for (const file of [...known.frozen.keys()].filter((name) => !name.startsWith("schema_")))
    assert.ok(
      numbered.some((one) => fileOf(one) === file),
      `${file} was released, and is gone`,
    );
  refuseEdited(known);
  assert.throws(
    () => refuseEdited(edited(known, 5)),
    /^MigrationError: migrations\/0005_retention\.sql is not what was released under this name: put the file back/,
  );
  const cut = whole && { ...whole, sql: "create table carillon.nothing ()" };
  assert.throws(
    () => refuseEdited({ ...known, ...(cut && { whole: cut }) }),
    /migrations\/schema_\d{4}\.sql is not what was/,
  );
  const windows = numbered.map((one) => ({ ...one, sql: one.sql.replaceAll("\n", "\r\n") }));
  refuseEdited({ ...known, numbered: windows });
});

test("ten replicas that start at once migrate once", () =>
  withDatabase(async (url, query) => {
    const results = await Promise.all(Array.from({ length: 10 }, () => migrate(url)));
    assert.deepEqual(
      results.map(({ length }) => length).sort((a, b) => a - b),
      [...Array(9).fill(0), numbered.length - (whole ? whole.version - 1 : 0)],
    );
    const { rows } = await query("select version, name, checksum from carillon.migrations order by version");
    assert.deepEqual(
      rows,
      numbered.map((one) => ({ version: one.version, name: one.name, checksum: checksumOf(one) })),
    );
  }));

test("a file that was edited after it was applied is refused, and nothing is changed", () =>
  withDatabase(async (url, query) => {
    const mine = {
      version: (numbered.at(-1)?.version ?? 0) + 1,
      name: "mine",
      sql: "create table carillon.mine (x int)",
    };
    const withMine = { ...chain(), numbered: [...numbered, mine] };
    await migrate(url, withMine);
    const next = { version: mine.version + 1, name: "next", sql: "drop table carillon.mine" };
    const withNext = { ...withMine, numbered: [...withMine.numbered, next] };
    await assert.rejects(
      migrate(url, edited(withNext, mine.version)),
      new RegExp(`migrations/${fileOf(mine)} is not the file that was applied to this database.* Nothing was changed`),
    );
    const renamed = numbered.map((one) => (one.version === 22 ? { ...one, name: "another" } : one));
    await assert.rejects(
      migrate(url, { ...withNext, numbered: [...renamed, mine, next] }),
      /0022_\w+\.sql is not the file/,
    );
    assert.equal((await query("select from carillon.mine")).rowCount, 0);
    assert.deepEqual(await migrate(url, withNext), [fileOf(next).slice(0, -4)]);
  }));

test("a database made before checksums were kept is recognised by those of its release, and keeps them from then on", () =>
  withDatabase(async (url, query) => {
    await migrate(url, chain(21));
    await query("alter table carillon.migrations drop column checksum");
    const known = chain();
    await assert.rejects(
      migrate(url, { ...edited(known, 7), frozen: known.frozen }),
      /0007_on_time\.sql is not what was released/,
    );
    await assert.rejects(
      migrate(url, { ...known, frozen: new Map() }),
      /0001_foundation\.sql is not the file that was/,
    );
    const columns =
      "select from information_schema.columns where table_schema = 'carillon' and column_name = 'checksum'";
    assert.equal((await query(columns)).rowCount, 0, "refused, nothing changed");

    await migrate(url, known);
    const { rows } = await query("select checksum from carillon.migrations order by version");
    assert.deepEqual(
      rows.map(({ checksum }) => checksum),
      known.numbered.map(checksumOf),
    );
    await assert.rejects(migrate(url, edited({ ...known, frozen: new Map() }, 7)), /0007_on_time\.sql is not the file/);
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
    const known = knownMigrations();
    await assert.rejects(migrate(url, { ...known, numbered: [...numbered, next, bad] }), /already exists/);
    assert.equal((await query("select to_regclass('carillon.half') as half")).rows[0].half, null);
    assert.deepEqual(await migrate(url), []);
  }));

test("behind somebody's open read a migration keeps nobody waiting for long, and says what is in its way", () =>
  withDatabase(async (url, query) => {
    await migrate(url, chain(21));
    await query("begin");
    await query("select from carillon.events");
    const other = new pg.Client(url);
    await other.connect();
    try {
      const migrating = migrate(url, chain());
      migrating.catch(() => undefined);
      const waits =
        "select from pg_stat_activity where application_name = 'carillon migrate' and wait_event_type = 'Lock'";
      await until(async () => ((await other.query(waits)).rowCount === 1 ? true : undefined));
      // In line behind it, and through once it has given up.
      assert.equal((await other.query("select from carillon.events")).rowCount, 0);
      await assert.rejects(migrating, /MigrationError: something holds a table.*Nothing was changed/);
    } finally {
      await other.end();
    }
    await query("rollback");
    assert.equal((await query("select max(version) as version from carillon.migrations")).rows[0].version, 21);
    assert.ok((await migrate(url, chain())).length > 0);
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
