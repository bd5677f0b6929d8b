// Weeks are archived by a thread of their own, with connections of its own: whatever becomes of it, nothing is lost.

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import type { Worker } from "node:worker_threads";
import pg from "pg";
import { directoryStore } from "#archive/directory.ts";
import { listManifests, type Manifest } from "#archive/manifest.ts";
import { retireInThread } from "#archive/retiring.ts";
import { ArchiveError, type ArchiveStore } from "#archive/store.ts";
import { isTooSlow } from "#store/connection/database.ts";
import { migrate } from "#store/connection/migrate.ts";
import type { Steps } from "#store/housekeeping.ts";
import { fillOldWeek, readLines } from "../support/archived.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
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
beforeEach(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  db = new pg.Pool({ connectionString: database.url });
  db.on("error", () => {});
  directory = await mkdtemp(join(tmpdir(), "carillon-archive-"));
  store = directoryStore(directory);
});
afterEach(async () => {
  await db.end();
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

const one = async (sql: string, values: unknown[] = []) => (await db.query(sql, values)).rows[0];
const isGone = async (table: string) => (await one("select to_regclass('carillon.' || $1) as it", [table])).it === null;
/** A thread that was ended has none. */
const whenDisconnected = () =>
  until(async () => {
    const { n } = await one(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name = 'carillon house'",
    );
    return n === 0 ? true : undefined;
  });

type Round = { steps: Steps; archived: Manifest[]; postponed: Error[]; thread: () => Worker };

/** Its thread is started by the first step. */
function begin(limitMs = 60_000): Round {
  const [archived, postponed]: [Manifest[], Error[]] = [[], []];
  let thread: Worker | undefined;
  process.once("worker", (started: Worker) => {
    thread = started;
  });
  const settings = { kind: "directory", directory } as const;
  const steps = retireInThread(
    { url: database.url, limitMs, settings, days: 90, batch: 1_000 },
    { archived: (manifest) => archived.push(manifest), archivePostponed: (_, error) => postponed.push(error) },
  );
  return { steps, archived, postponed, thread: () => thread ?? assert.fail("no thread was started") };
}

async function toTheEnd({ steps }: Round): Promise<number> {
  let count = 0;
  for await (const step of steps) count += step;
  return count;
}

/** Of two parts, so that one can be there already. */
const ROWS = 20_300;

/** Every one of the week is in the one archive of it, once. */
async function assertArchived(week: string, rows: number): Promise<void> {
  assert.ok(await isGone(`notifications_${week}`));
  const [manifest = assert.fail(), ...more] = await listManifests(store, "");
  assert.deepEqual([manifest.notifications, more], [rows, []]);
  const ids = (await readLines(store, manifest)).map(({ notification }) => notification.id);
  assert.deepEqual([ids.length, new Set(ids).size], [rows, rows]);
}

test("a thread archives a week, tells of it, and is gone with its connections", async () => {
  const week = await fillOldWeek(db, ROWS);
  const round = begin();
  assert.equal(await toTheEnd(round), ROWS + 1, "the notifications, and a week that was dropped");
  await assertArchived(week, ROWS);
  assert.deepEqual(
    round.archived.map((manifest) => [manifest.week, manifest.notifications, manifest.parts.length]),
    [[week, ROWS, 2]],
  );
  assert.equal(round.thread().threadId, -1, "it has ended");
  await whenDisconnected();
});

test("left midway it is ended, and the next round goes on with what was begun", async () => {
  const week = await fillOldWeek(db, ROWS);
  const round = begin();
  assert.equal((await round.steps.next()).value, 20_000);
  await round.steps.return();
  assert.equal(round.thread().threadId, -1);
  await whenDisconnected();
  assert.equal((await one(`select count(*)::int as n from carillon.notifications_${week}`)).n, ROWS, "all is kept");
  await toTheEnd(begin());
  await assertArchived(week, ROWS);
});

test("a thread that dies midway fails its round alone, and the next goes on after the last part that was noted", async () => {
  const week = await fillOldWeek(db, ROWS);
  const round = begin();
  await round.steps.next();
  await until(async () => (await one("select from carillon.archive_parts")) && true);
  const [first] = (await readdir(directory, { recursive: true })).filter((file) => file.endsWith(".gz"));
  await round.thread().terminate();
  await assert.rejects(toTheEnd(round), /the thread that archives has ended/);
  assert.equal((await one(`select count(*)::int as n from carillon.notifications_${week}`)).n, ROWS);
  await toTheEnd(begin());
  await assertArchived(week, ROWS);
  const parts = (await listManifests(store, ""))[0]?.parts.map(({ key }) => key);
  assert.equal(parts?.[0], first, "the first was not written again");
});

test("what goes wrong in it is heard as it is: an archive that is away, and a statement that took too long", async () => {
  const week = await fillOldWeek(db, 50);
  // A file stands where the directory is to be.
  await rm(directory, { recursive: true });
  await writeFile(directory, "");
  const away = begin();
  await assert.rejects(
    toTheEnd(away),
    (error) => error instanceof ArchiveError && /ENOTDIR|EEXIST/.test(error.message),
  );
  assert.match(String(away.postponed[0]), /cannot be used/);
  await rm(directory);

  const other = await db.connect();
  await other.query(`begin; lock table carillon.notifications_${week} in access exclusive mode`);
  try {
    await assert.rejects(toTheEnd(begin(300)), (error) => error instanceof Error && isTooSlow(error.cause));
  } finally {
    await other.query("rollback");
    other.release();
  }
  assert.deepEqual(await listManifests(store, ""), []);
  await toTheEnd(begin());
  await assertArchived(week, 50);
});

test("requests as large as they may be, in letters that take most, go through its small heap", async () => {
  const week = await fillOldWeek(db, 80);
  await db.query(
    `update carillon.notifications_${week} set request = json_build_object('channel', 'console', 'text', repeat('鐘', $1))`,
    [Math.floor(262_000 / 3)],
  );
  await toTheEnd(begin());
  await assertArchived(week, 80);
});
