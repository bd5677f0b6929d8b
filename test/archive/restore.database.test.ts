// What was archived comes back into the record, to be read: as it was, once, for a while, and without anybody being told or sent anything.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import pg from "pg";
import { directoryStore } from "#archive/directory.ts";
import { findArchived } from "#archive/find.ts";
import { listManifests, type Manifest, putManifest } from "#archive/manifest.ts";
import { type RestoreWorld, restore } from "#archive/restore.ts";
import { ArchiveError, type ArchiveStore } from "#archive/store.ts";
import { migrate } from "#store/connection/migrate.ts";
import { putDeletion } from "#store/deletions.ts";
import { fillOldWeek, retireAll } from "../support/archived.ts";
import { flakyPool } from "../support/flaky-pool.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";

let keptAlive: FreshDatabase;
before(async () => {
  keptAlive = await freshDatabase();
});
after(() => keptAlive.drop());

let database: FreshDatabase;
let db: pg.Pool;
let directory: string;
let store: ArchiveStore;
beforeEach(async () => {
  [database, db] = await openDatabase();
  directory = await mkdtemp(join(tmpdir(), "carillon-archive-"));
  store = directoryStore(directory);
});
afterEach(async () => {
  await db.end();
  await database.drop();
  await rm(directory, { recursive: true });
});

async function openDatabase(): Promise<[FreshDatabase, pg.Pool]> {
  const fresh = await freshDatabase();
  await migrate(fresh.url);
  const pool = new pg.Pool({ connectionString: fresh.url });
  pool.on("error", () => {});
  return [fresh, pool];
}

const actor = { kind: "command-line", command: "archive restore", user: "root" } as const;
const all = async (prefix = ""): Promise<{ manifests: Manifest[] }> => ({
  manifests: await listManifests(store, prefix),
});
const bringBack = async (more: Partial<RestoreWorld> = {}, days = 30) =>
  restore({ pool: db, store, waitMs: 1, ...more }, actor, await all(), days);
const rowsOf = async (sql: string, values: unknown[] = [], of = db) => (await of.query(sql, values)).rows;
const count = async (table: string, of = db): Promise<number> =>
  (await rowsOf(`select count(*)::int as n from carillon.${table}`, [], of))[0].n;
const isGone = async (table: string) =>
  (await rowsOf("select to_regclass('carillon.' || $1) as it", [table]))[0].it === null;

/** Everything but the numbers that are given anew. */
const record = (of = db) =>
  rowsOf(
    `select to_jsonb(n) - 'seq' - 'pool' as notification,
       (select jsonb_agg(to_jsonb(e) - 'seq' order by e.seq) from carillon.events e where e.notification_id = n.id) as events
     from carillon.notifications n order by n.id`,
    [],
    of,
  );

test("a week comes back as it was, and nobody is told, nothing queued: it is there to be read, and in the audit log", async () => {
  const week = await fillOldWeek(db, 1_200);
  const was = await record();
  await retireAll(db, store);
  assert.equal(await count("notifications"), 0);
  const told = await count("feed");
  const { restored, present } = await bringBack({}, 7);
  assert.deepEqual([restored, present], [1_200, 0]);
  assert.deepEqual(await record(), was);
  assert.equal(await count("feed"), told);
  assert.deepEqual(await rowsOf("select from carillon.queue_entries"), []);
  assert.equal(await count("archive_stragglers"), 0, "what came back is no news for the archive");
  const [line] = await rowsOf("select actor, actor_name, object, after from carillon.audit order by seq desc limit 1");
  const [{ name = "" } = {}] = await listManifests(store, week);
  assert.deepEqual(line, {
    actor: "archive restore",
    actor_name: "root",
    object: `archive:${name}`,
    after: { days: 7 },
  });
});

test("what came back stays for its days, whatever the retention says, and goes then without being archived once more", async () => {
  const week = await fillOldWeek(db, 30);
  await retireAll(db, store);
  await bringBack();
  await retireAll(db, store);
  assert.equal(await count(`notifications_${week}`), 30);
  await db.query("update carillon.archive_weeks set keep_until = carillon.now()");
  await retireAll(db, store);
  assert.ok(await isGone(`notifications_${week}`));
  assert.deepEqual([await count("notifications"), await count("archive_weeks")], [0, 0]);
  assert.equal((await listManifests(store, "")).length, 1);
});

test("it is not sent again, by nobody who asks; what happens to it all the same is not lost with it", async () => {
  const week = await fillOldWeek(db, 30);
  await retireAll(db, store);
  await bringBack();
  const ids = (await rowsOf("select id from carillon.notifications where tenant = 1")).map(({ id }) => id);
  assert.ok(ids.length > 0);
  assert.deepEqual(await rowsOf("select carillon.retry(1, $1)", [ids]), []);
  await db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status)
     values ($1, 1, 'retried', 'failed', 'queued'), ($1, 1, 'cancelled', 'queued', 'cancelled')`,
    [ids[0]],
  );
  await db.query("update carillon.archive_weeks set keep_until = carillon.now()");
  await retireAll(db, store);
  assert.ok(await isGone(`notifications_${week}`));
  const { line = "" } = (await findArchived(store, ids[0])) ?? {};
  assert.deepEqual(
    JSON.parse(line).events.map(({ type }: { type: string }) => type),
    ["attempt", "retried", "cancelled"],
  );
});

test("once more changes nothing, and nothing that is there is overwritten", async () => {
  await fillOldWeek(db, 600);
  await retireAll(db, store);
  await bringBack();
  await db.query(
    "update carillon.notifications set user_id = 'changed' where ctid = any (array(select ctid from carillon.notifications limit 1))",
  );
  const was = await record();
  const { restored, present } = await bringBack();
  assert.deepEqual([restored, present], [0, 600]);
  assert.deepEqual(await record(), was);
});

test("whoever is cut off in the middle leaves whole notifications, and the next brings the rest", async () => {
  await fillOldWeek(db, 1_200);
  const was = await record();
  await retireAll(db, store);
  let cuts = 0;
  for (let at = 1; ; at++) {
    const flaky = flakyPool(db, { at, when: at % 2 === 0 ? "before" : "after" });
    const ended = await bringBack({ pool: flaky.pool }).then(
      () => true,
      () => false,
    );
    const torn =
      "select from carillon.notifications n where not exists (select from carillon.events e where e.notification_id = n.id)";
    assert.deepEqual(await rowsOf(torn), []);
    if (ended) break;
    cuts += 1;
  }
  assert.ok(cuts >= 7, "it was cut off everywhere");
  await bringBack();
  assert.deepEqual(await record(), was);
});

test("of a notification that is in several archives the youngest comes back; what waits of the week stays as it is", async () => {
  const week = await fillOldWeek(db, 50);
  await db.query(`insert into carillon.later (seq, due_at, priority, tenant, id)
    select seq, '2099-01-01', priority, tenant, id from carillon.notifications order by id desc limit 1`);
  const [waiting] = await rowsOf("select id from carillon.later");
  const [{ id }] = await rowsOf("select id from carillon.notifications where tenant = 1 order by id limit 1");
  // Something happens to it after its line was written: the week's archive has it without, a late one with.
  const meanwhile: ArchiveStore = {
    ...store,
    async put(key, ...given) {
      if (key.endsWith("manifest.json")) {
        await db.query(
          `insert into carillon.events (notification_id, tenant, type, from_status, to_status)
           select $1, 1, type, was, becomes from (values ('retried', 'failed'::carillon.status, 'queued'::carillon.status),
             ('cancelled', 'queued', 'cancelled')) as x(type, was, becomes)
           where not exists (select from carillon.events where notification_id = $1 and type = 'cancelled')`,
          [id],
        );
      }
      return store.put(key, ...given);
    },
  };
  await retireAll(db, meanwhile);
  const manifests = await listManifests(store, week);
  assert.deepEqual(
    manifests.map(({ kind, notifications }) => [kind, notifications]),
    [
      ["week", 49],
      ["late", 1],
    ],
  );
  const { restored, present } = await bringBack();
  assert.deepEqual([restored, present], [49, 1]);
  const types = await rowsOf("select type from carillon.events where notification_id = $1 order by seq", [id]);
  assert.deepEqual(types, [{ type: "attempt" }, { type: "retried" }, { type: "cancelled" }]);
  assert.deepEqual(await rowsOf("select id from carillon.queue_entries"), [waiting]);
  assert.equal(await count(`notifications_${week}`), 50, "what waited came along");
});

test("one alone can be brought back, and the rest of its week later", async () => {
  await fillOldWeek(db, 40);
  const was = await record();
  const [{ id }] = await rowsOf("select id from carillon.notifications where tenant = 2 limit 1");
  await retireAll(db, store);
  const { manifest, line } = (await findArchived(store, id)) ?? assert.fail();
  const done = await restore({ pool: db, store }, actor, { manifests: [manifest], only: { id, line } }, 30);
  assert.equal(done.restored, 1);
  assert.deepEqual(await rowsOf("select id from carillon.notifications"), [{ id }]);
  assert.deepEqual((await rowsOf("select after from carillon.audit order by seq desc limit 1"))[0].after, {
    days: 30,
    notification: id,
  });
  const { restored, present } = await bringBack();
  assert.deepEqual([restored, present], [39, 1]);
  assert.deepEqual(await record(), was);
});

test("into another database tenants come by their names; those that it does not have are left out and named", async () => {
  await fillOldWeek(db, 60);
  await retireAll(db, store);
  const [elsewhere, other] = await openDatabase();
  try {
    await other.query("insert into carillon.tenants (name) values ('another'), ('acme')");
    const done = await bringBack({ pool: other });
    assert.deepEqual([done.restored, done.foreign, done.strangers], [60, 0, []]);
    const tenants = await rowsOf(
      "select t.name, count(*)::int as n from carillon.notifications n join carillon.tenants t on t.id = abs(n.tenant) group by 1 order by 1",
      [],
      other,
    );
    assert.deepEqual(tenants, [
      { name: "acme", n: 29 },
      { name: "default", n: 31 },
    ]);
    const wrong =
      "select from carillon.events e join carillon.notifications n on n.id = e.notification_id where n.tenant <> e.tenant";
    assert.deepEqual(await rowsOf(wrong, [], other), []);
  } finally {
    await other.end();
    await elsewhere.drop();
  }
  await db.query("update carillon.tenants set name = 'renamed' where name = 'acme'");
  const done = await bringBack();
  assert.deepEqual([done.restored, done.foreign, done.strangers], [31, 29, ["acme"]]);
});

test("who was forgotten since does not come back, and neither do callbacks about them", async () => {
  await fillOldWeek(db, 40);
  await retireAll(db, store);
  // User 3 is of tenant 2, whose callbacks these are not; user 2 and the callback's user 3 are of tenant 1.
  for (const name of ["user 2", "user 3"]) {
    await putDeletion(db, 1, name);
    await db.query("update carillon.deletions set phase = 'done', user_id = null, finished_at = now()");
  }
  const { restored, forgotten } = await bringBack();
  assert.deepEqual([restored, forgotten], [38, 2]);
  const left = await rowsOf(
    "select tenant, user_id from carillon.notifications where user_id in ('user 1', 'user 2', 'user 3')",
  );
  assert.deepEqual(left, [{ tenant: 2, user_id: "user 3" }]);
});

test("who is accepted after being forgotten does come back", async () => {
  await fillOldWeek(db, 40);
  await retireAll(db, store);
  await putDeletion(db, 1, "user 2");
  await db.query("update carillon.deletions set requested_at = '2020-01-01'");
  assert.equal((await bringBack()).restored, 40);
});

test("a request to be forgotten waits for what is being brought back, so that it finds it", async () => {
  await fillOldWeek(db, 40);
  await retireAll(db, store);
  const other = await db.connect();
  await other.query("begin");
  await other.query("select pg_advisory_xact_lock(hashtextextended('carillon.deletions', 0))");
  let isAsked = false;
  const asking = putDeletion(db, 1, "user 2").then(() => {
    isAsked = true;
  });
  const waiting =
    "select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())";
  while ((await rowsOf(waiting)).length === 0) assert.ok(!isAsked);
  await other.query("commit");
  other.release();
  await asking;
});

test("a damaged part is passed over and named; the others come back", async () => {
  const week = await fillOldWeek(db, 50);
  await db.query(`insert into carillon.later (seq, due_at, priority, tenant, id)
    select seq, '2099-01-01', priority, tenant, id from carillon.notifications order by id limit 2`);
  await retireAll(db, store);
  await db.query(`insert into carillon.events (notification_id, tenant, type, from_status, to_status)
    select id, tenant, 'cancelled', 'pending', 'cancelled' from carillon.later`);
  await db.query("delete from carillon.later");
  await retireAll(db, store);
  const late = (await listManifests(store, week)).find(({ kind }) => kind === "late") ?? assert.fail();
  const [{ key } = assert.fail()] = late.parts;
  await writeFile(join(directory, key), "damaged");
  const { restored, faults } = await bringBack();
  assert.deepEqual([restored, faults], [48, [`${key} has less than its ${late.parts[0]?.bytes} bytes`]]);
});

test("a week that is in the record is left alone, and so is what a newer Carillon wrote", async () => {
  const week = await fillOldWeek(db, 20);
  await retireAll(db, store);
  const [manifest = assert.fail()] = await listManifests(store, week);
  await fillOldWeek(db, 20);
  await assert.rejects(
    bringBack(),
    new ArchiveError(`the week ${week} is in the record: nothing of it is brought back`),
  );
  const newer = { ...manifest, name: `${week}-00000000`, schema: 9_999 };
  await putManifest(store, newer);
  await assert.rejects(bringBack(), { name: "ArchiveError", message: /^\d+-0+ was written by a newer Carillon/ });
  assert.equal((await rowsOf("select from carillon.audit where action = 'archive.restore'")).length, 0);
});
