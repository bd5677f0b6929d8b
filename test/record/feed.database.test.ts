// The feed: everything that happens is told, once, in an order in which nothing is missed.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type pg from "pg";
import { Event } from "#domain/event.ts";
import { FACT_TYPES } from "#domain/fact.ts";
import { readFeed } from "#record/feed.ts";
import { accept, attempt, feedDatabase, follow, makeId, namesOf } from "../support/feed.ts";
import { until } from "../support/until.ts";

const typesOf = (facts: readonly { type: string }[]) => facts.map(({ type }) => type);
const rowsOf = async (db: pg.Pool) =>
  (await db.query<{ n: number }>("select count(*)::int as n from carillon.feed")).rows[0]?.n;

test("each event is told under the name of what it came to", async (t) => {
  const { db } = await feedDatabase(t);
  for (const { properties } of Event.anyOf) {
    const event: string = properties.type.const;
    // Nobody is told of it: the letter has failed, as before.
    if (event === "purged") continue;
    for (const to of event === "accepted" ? [] : properties.to.enum) {
      const { rows } = await db.query("select carillon.fact_type($1, $2) as number", [event, to]);
      const expected =
        event === "attempt" ? (to === "pending" ? "retrying" : to) : event === "bounced" ? "failed" : event;
      assert.equal(FACT_TYPES[rows[0].number - 1], expected, `${event} → ${to}`);
    }
  }
});

test("what is accepted and what becomes of it is told, a row for a statement, and to tenants only", async (t) => {
  const { db } = await feedDatabase(t);
  const [a, b, c] = [makeId(), makeId(), makeId()];
  await accept(db, [a, b]);
  await accept(db, [c], -1);
  await attempt(db, [a, b], "sent");
  await attempt(db, [c], "sent", -1);
  await accept(db, []);
  await attempt(db, []);
  assert.equal(await rowsOf(db), 2);
  const { facts } = await follow(db, { limit: 100, least: 4 });
  assert.deepEqual(typesOf(facts), ["accepted", "accepted", "sent", "sent"]);
  assert.deepEqual(
    facts.map(({ notificationId }) => notificationId),
    [a, b, a, b],
  );
  const { rows } = await db.query("select seq::int as seq from carillon.events where tenant = 1 order by seq");
  assert.deepEqual(
    facts.map(({ number }) => number),
    [0, 0, ...rows.map(({ seq }) => seq)],
  );
});

test("every partition of the record tells, and nothing but the archive writes into one past its table", async (t) => {
  const { db } = await feedDatabase(t);
  // Of last week, of a clock that is far off, and of now.
  const ids = ["018bcfe5-6800-7000-8000-000000000001", "ffffffff-6800-7000-8000-000000000001", makeId()];
  for (const id of ids) await attempt(db, [id], "sent");
  const { facts } = await follow(db, { limit: 100, least: 3 });
  assert.deepEqual(
    facts.map(({ notificationId }) => notificationId),
    ids,
  );

  const root = join(import.meta.dirname, "..", "..");
  const files = globSync(["src/**/*.ts", "migrations/*.sql"], { cwd: root });
  const past = files.filter((file) =>
    /(insert into|copy)\s+carillon\.(events_\w|%I)/i.test(readFileSync(join(root, file), "utf8")),
  );
  // What is moved from week to week, or restored, was told when it happened.
  assert.deepEqual(past, ["migrations/0035_archive.sql"]);
});

test("a page may end within a statement, and goes on where it ended", async (t) => {
  const { db } = await feedDatabase(t);
  const ids = Array.from({ length: 7 }, makeId);
  await accept(db, ids);
  await attempt(db, ids, "sent");
  const whole = namesOf((await follow(db, { limit: 100, least: 14 })).facts);
  assert.equal(whole.length, 14);
  for (const limit of [1, 2, 3, 7, 14])
    assert.deepEqual(namesOf((await follow(db, { limit, least: 14 })).facts), whole, `by ${limit}`);
});

test("a tenant is told its own, and one of which little happens comes forward without any", async (t) => {
  const { db } = await feedDatabase(t);
  const [busy, quiet, mixed] = [makeId(), makeId(), makeId()];
  await accept(db, [quiet], 2);
  await db.query("select from carillon.accept($1, false)", [
    JSON.stringify([
      { i: mixed, t: 2, c: "email", p: 2, r: {} },
      { i: busy, t: 1, c: "email", p: 2, r: {} },
    ]),
  ]);
  const from = (await follow(db, { limit: 10, tenant: 2, least: 2 })).next;
  for (let n = 0; n < 2_500; n += 500) {
    await db.query(`do $$ begin for n in 1..500 loop
      insert into carillon.events (notification_id, tenant, type, from_status, to_status) values ('${busy}', 1, 'postponed', 'processing', 'pending');
    end loop; end $$`);
  }
  await follow(db, { limit: 1_000, tenant: 1, least: 2_501 });
  const page = await readFeed(db, { after: from, limit: 10, tenant: 2 });
  assert.ok(page.kind === "page" && page.facts.length === 0 && !page.isAtEnd && page.next.seq > from.seq, "bounded");
  assert.deepEqual(namesOf((await follow(db, { limit: 10, tenant: 2, least: 2 })).facts), [
    `accepted ${quiet}:0`,
    `accepted ${mixed}:0`,
  ]);
  assert.equal((await follow(db, { limit: 1_000, tenant: 1, least: 2_501 })).facts.length, 2_501);
});

test("of one notification a later fact never comes first, whichever transaction began before", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const id = makeId();
  const [early, late] = [await connect(), await connect()];
  // The first has the smaller id, and commits last.
  await early.query("begin");
  await early.query("select pg_current_xact_id()");
  await late.query("begin");
  await accept(late, [id]);
  await late.query("savepoint s");
  await attempt(late, [id]);
  await late.query("commit");
  await early.query("savepoint s");
  await attempt(early, [id], "sent");
  await early.query("release s");
  await early.query("commit");
  assert.deepEqual(typesOf((await follow(db, { limit: 1, least: 3 })).facts), ["accepted", "retrying", "sent"]);
});

test("nor where the second statement had begun and waited for the first", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const id = makeId();
  await accept(db, [id]);
  const [early, late] = [await connect(), await connect()];
  await early.query("begin");
  const { rows } = await early.query("select pg_current_xact_id(), pg_backend_pid() as pid");
  await late.query("begin");
  await late.query("select from carillon.notifications where id = $1 for update", [id]);
  await attempt(late, [id]);
  const waiting = early.query(
    `with held as materialized (select id from carillon.notifications where id = $1 for update)
     insert into carillon.events (notification_id, tenant, type, from_status, to_status)
     select id, 1, 'attempt', 'processing', 'sent' from held`,
    [id],
  );
  await until(
    async () =>
      (await db.query("select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'", [rows[0].pid]))
        .rowCount === 1 || undefined,
  );
  await late.query("commit");
  await waiting;
  await early.query("commit");
  assert.deepEqual(typesOf((await follow(db, { limit: 1, least: 3 })).facts), ["accepted", "retrying", "sent"]);
});

test("what was written beside an open transaction is told once that has ended, and what it wrote itself is not missed", async (t) => {
  const { db, connect } = await feedDatabase(t);
  const [first, second, third] = [makeId(), makeId(), makeId()];
  const open = await connect();
  await accept(db, [first]);
  await open.query("begin");
  await accept(open, [second]);
  await accept(db, [third]);
  const seen = await follow(db, { limit: 10, least: 1 });
  assert.deepEqual(namesOf(seen.facts), [`accepted ${first}:0`]);
  await open.query("commit");
  const { facts } = await follow(db, { limit: 10, after: seen.next, least: 2 });
  assert.deepEqual(namesOf(facts).sort(), [`accepted ${second}:0`, `accepted ${third}:0`].sort());
});
