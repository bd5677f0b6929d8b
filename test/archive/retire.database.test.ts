// A week goes into the archive, is read back, and only then out of the record; whatever is killed, away or happens meanwhile.

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { startFauxqs } from "fauxqs";
import pg from "pg";
import { directoryStore } from "#archive/directory.ts";
import { listManifests, type Manifest } from "#archive/manifest.ts";
import { ArchiveError, type ArchiveStore } from "#archive/store.ts";
import { migrate } from "#store/connection/migrate.ts";
import { putDeletion } from "#store/deletions.ts";
import { fillOldWeek, type Line, readLines, retireAll } from "../support/archived.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let keptAlive: FreshDatabase;
before(async () => {
  keptAlive = await freshDatabase();
});
after(() => keptAlive.drop());

let database: FreshDatabase;
let db: pg.Pool;
let directory: string;
let store: ArchiveStore;
let service: Service | undefined;
beforeEach(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  db = new pg.Pool({ connectionString: database.url });
  db.on("error", () => {});
  directory = await mkdtemp(join(tmpdir(), "carillon-archive-"));
  store = directoryStore(directory);
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  await db.end();
  await database.drop();
  await rm(directory, { recursive: true });
});

const one = async (sql: string, values: unknown[] = []) => (await db.query(sql, values)).rows[0];
const count = async (table: string): Promise<number> =>
  (await one(`select count(*)::int as n from carillon.${table}`)).n;
const isGone = async (table: string) => (await one("select to_regclass('carillon.' || $1) as it", [table])).it === null;

const fillWeek = (rows: number) => fillOldWeek(db, rows);
const retire = (through: ArchiveStore = store) => retireAll(db, through);
const linesOf = (manifest: Manifest) => readLines(store, manifest);
const idOf = ({ notification }: Line) => notification.id;

/** A store whose nth call of a kind fails. */
function failing(kind: "put" | "get", at: number, how: () => unknown): ArchiveStore {
  let calls = 0;
  const trip = () => {
    if (++calls === at) throw how();
  };
  return {
    ...store,
    async put(...given) {
      if (kind === "put") trip();
      return store.put(...given);
    },
    async get(key) {
      if (kind === "get") trip();
      return store.get(key);
    },
  };
}

test("a week is in the archive with all it has, by manifest and checksum, before it is dropped", async () => {
  const week = await fillWeek(2_345);
  const before = (await db.query("select id from carillon.notifications order by id")).rows.map(({ id }) => id);
  await retire();
  assert.ok((await isGone(`notifications_${week}`)) && (await isGone(`events_${week}`)));
  const [manifest = assert.fail(), ...more] = await listManifests(store, "");
  assert.deepEqual(more, []);
  const { notifications, events, callbacks, tenants, kind, from } = manifest;
  assert.deepEqual(
    { week: manifest.week, notifications, events, callbacks, tenants, kind },
    { week, notifications: 2_345, events: 2_345, callbacks: 1, tenants: { 1: "default", 2: "acme" }, kind: "week" },
  );
  assert.equal(from.slice(0, 10).replaceAll("-", ""), week);
  const lines = await linesOf(manifest);
  assert.deepEqual(lines.map(idOf).sort(), before);
  const line = lines.at(-1) ?? assert.fail();
  assert.deepEqual(
    [line.notification.request, line.events.map(({ type }) => type)],
    [{ channel: "console", n: 2345, text: "a\nb" }, ["attempt"]],
  );
  assert.equal(await count("archive_weeks"), 0, "nothing is left of the way there");
  const { rows } = await db.query("select actor, action, object, after from carillon.audit order by seq");
  const { name } = manifest;
  assert.deepEqual(rows, [
    {
      actor: "keeper",
      action: "archive.write",
      object: `archive:${name}`,
      after: { notifications: 2345, events: 2345 },
    },
    { actor: "keeper", action: "week.drop", object: `week:${week}`, after: { archive: name, moved: 0 } },
  ]);
});

test("what waits is not in the archive of its week, moves on, and has a late one when it is over", async () => {
  const week = await fillWeek(50);
  await db.query(`insert into carillon.later (seq, due_at, priority, tenant, id)
    select seq, '2099-01-01', priority, tenant, id from carillon.notifications order by id limit 2`);
  const waiting = (await db.query("select id from carillon.later order by id")).rows.map(({ id }) => id);
  await retire();
  assert.ok(await isGone(`notifications_${week}`));
  assert.equal((await listManifests(store, ""))[0]?.notifications, 48);
  assert.equal(await count("notifications"), 2);
  await retire();
  assert.equal((await listManifests(store, "")).length, 1, "nothing of it is over yet");

  await db.query(`insert into carillon.events (notification_id, tenant, type, from_status, to_status)
    select id, tenant, 'cancelled', 'pending', 'cancelled' from carillon.later`);
  await db.query("delete from carillon.later");
  await retire();
  assert.deepEqual([await count("notifications"), await count("events")], [0, 0]);
  const late = (await listManifests(store, week)).find(({ kind }) => kind === "late") ?? assert.fail();
  const lines = await linesOf(late);
  assert.deepEqual(lines.map(idOf).sort(), waiting);
  assert.deepEqual(
    lines[0]?.events.map(({ type }) => type),
    ["attempt", "cancelled"],
  );
});

test("what happens to one after it was archived is not lost with its week", async () => {
  const week = await fillWeek(50);
  const { id } = await one("select id from carillon.notifications where tenant = 1 order by id desc limit 1");
  let isReported = false;
  const meanwhile: ArchiveStore = {
    ...store,
    async put(key, ...given) {
      // The parts are written by then.
      if (key.endsWith("manifest.json") && !isReported) {
        isReported = true;
        await db.query(
          `insert into carillon.events (notification_id, tenant, type, from_status, to_status)
           values ($1, 1, 'retried', 'failed', 'queued'), ($1, 1, 'cancelled', 'queued', 'cancelled')`,
          [id],
        );
      }
      return store.put(key, ...given);
    },
  };
  await retire(meanwhile);
  assert.ok(await isGone(`notifications_${week}`));
  const manifests = await listManifests(store, week);
  assert.deepEqual(manifests.map(({ kind, notifications }) => [kind, notifications]).sort(), [
    ["late", 1],
    ["week", 50],
  ]);
  const [line = assert.fail()] = await linesOf(manifests.find(({ kind }) => kind === "late") ?? assert.fail());
  assert.equal(idOf(line), id);
  assert.deepEqual(
    line.events.map(({ type }) => type),
    ["attempt", "retried", "cancelled"],
  );
});

test("of a week of which too many wait to move on, what is over goes once it is archived, and the rest by and by", async () => {
  const week = await fillWeek(2_600);
  await db.query(`insert into carillon.later (seq, due_at, priority, tenant, id)
    select seq, '2099-01-01', priority, tenant, id from carillon.notifications order by id limit 1500`);
  await retire();
  assert.equal(await count(`notifications_${week}`), 1_500);
  assert.equal((await listManifests(store, week))[0]?.notifications, 1_100);
  await db.query("delete from carillon.later where seq in (select seq from carillon.later limit 700)");
  await retire();
  assert.equal(await count(`notifications_${week}`), 800, "what has ended was archived late");
  await retire();
  assert.ok(await isGone(`notifications_${week}`));
  assert.equal(await count("notifications_default"), 800);
  const archived = (await listManifests(store, week)).reduce((sum, { notifications }) => sum + notifications, 0);
  assert.equal(archived, 1_800);
});

test("wherever it is killed, it goes on there: nothing is dropped before all of it is there, and all of it is there once", async () => {
  for (const [kind, at] of [
    ["put", 1],
    ["put", 2],
    ["get", 1],
    ["get", 2],
  ] as const) {
    await rm(directory, { recursive: true });
    const week = await fillWeek(300);
    const ids = (await db.query("select id from carillon.notifications order by id")).rows.map(({ id }) => id);
    await assert.rejects(retire(failing(kind, at, () => new Error("killed"))));
    assert.equal(await count(`notifications_${week}`), 300, `${kind} ${at}: all is kept`);
    await retire();
    assert.ok(await isGone(`notifications_${week}`));
    const manifests = await listManifests(store, "");
    assert.equal(manifests.length, 1, `${kind} ${at}: it went on with what was begun`);
    assert.deepEqual((await linesOf(manifests[0] ?? assert.fail())).map(idOf).sort(), ids);
  }
});

test("a part that does not read back is not believed: the week stays, and is written anew", async () => {
  const week = await fillWeek(300);
  const damaging: ArchiveStore = {
    ...store,
    put: (key, content, options) =>
      key.endsWith(".gz")
        ? store.put(key, Buffer.from("damaged"), { ...options, sha256: "4f6c4d94f8d0a7d3e7d0a3a5a2d6d6c4b3a0" })
        : store.put(key, content, options),
  };
  await assert.rejects(retire(damaging), ArchiveError);
  assert.equal(await count(`notifications_${week}`), 300);
  await retire();
  assert.ok(await isGone(`notifications_${week}`));
});

test("an archive that is away postpones, says so in health and figures, and is caught up with when it is back", async () => {
  const week = await fillWeek(20);
  const server = await startFauxqs({ port: 0, logger: false });
  const archive = {
    kind: "s3",
    endpoint: `http://127.0.0.1:${server.port}`,
    bucket: "cold",
    prefix: "c/",
    region: "eu-west-1",
    pathStyle: true,
    credentials: { kind: "keys", keys: { accessKeyId: "A", secretAccessKey: "s" } },
    sse: undefined,
  } as const;
  service = await startService({
    databaseUrl: database.url,
    roles: ["api", "keeper"],
    sweepMs: 50,
    retentionDays: 90,
    archive,
  });
  const { ask } = service;
  const health = async () => {
    const { body } = await ask("GET", "/health");
    const parts: { name: string; degraded?: boolean; detail: string }[] = body.checks ?? body.parts ?? body;
    return JSON.stringify(parts);
  };
  await until(async () => ((await health()).includes("old weeks are kept until it is back") ? true : undefined));
  const { status, body } = await ask("GET", "/health");
  assert.deepEqual([status, body.status], [200, "degraded"]);
  assert.match(String((await ask("GET", "/metrics")).body), /^carillon_archive_postponed [1-9]/m);
  assert.equal(await count(`notifications_${week}`), 20);

  server.createBucket("cold");
  await until(async () => ((await isGone(`notifications_${week}`)) ? true : undefined));
  await until(async () => ((await health()).includes("nothing waits for it") ? true : undefined));
  await service.stop();
  service = undefined;
  await server.stop();
});

test("replicas of the release before drop nothing once there is an archive", async () => {
  const week = await fillWeek(20);
  await db.query("update carillon.archiving set is_required = true");
  assert.equal((await one("select carillon.drop_week($1) as it", [week])).it, false);
  const { deleted } = await one(
    "select deleted from carillon.thin_out($1, now(), 0, '00000000-0000-0000-0000-000000000000', 1000)",
    [week],
  );
  assert.deepEqual([deleted, await count("notifications")], [0, 20]);
  await db.query("update carillon.archiving set is_required = false");
  assert.equal((await one("select carillon.drop_week($1) as it", [week])).it, true);
  assert.deepEqual(await readdir(directory), []);
});

test("who asked to be forgotten, before or while a week is written, is not in an archive until everything of them is blank", async () => {
  const week = await fillWeek(40);
  await putDeletion(db, 1, "user 2");
  let isAsked = false;
  const meanwhile: ArchiveStore = {
    ...store,
    async put(key, ...given) {
      // The callback is about this one of the tenant.
      if (!isAsked) await putDeletion(db, 1, "user 3");
      isAsked = true;
      return store.put(key, ...given);
    },
  };
  await retire(meanwhile);
  const [first = assert.fail(), ...none] = await listManifests(store, "");
  assert.deepEqual(none, [], "no late one, as they are not blank yet");
  const ids = async (sql: string) => (await db.query(sql)).rows.map(({ id }) => id);
  const theirs = await ids("select id from carillon.notifications_default order by id");
  assert.equal(theirs.length, 2);
  assert.ok(await isGone(`notifications_${week}`));
  const written = (await linesOf(first)).map(idOf);
  assert.ok(!written.includes(theirs[1] ?? ""), "user 2 had asked before");
  await db.query("update carillon.notifications set user_id = null, request = '{}'");
  await db.query("update carillon.deletions set phase = 'done', user_id = null, finished_at = now()");
  await retire();
  const late = (await listManifests(store, "")).find(({ kind }) => kind === "late") ?? assert.fail();
  assert.deepEqual(
    (await linesOf(late)).map(({ notification }) => [notification.id, notification.request]),
    theirs.map((id) => [id, {}]),
  );
});
