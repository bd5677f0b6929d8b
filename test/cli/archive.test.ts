// carillon archive: what an operator sees of it, and its exit codes.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { directoryStore } from "#archive/directory.ts";
import { listManifests } from "#archive/manifest.ts";
import { migrate } from "#store/connection/migrate.ts";
import { fillOldWeek, retireAll } from "../support/archived.ts";
import { freshDatabase } from "../support/postgres.ts";
import { sandboxFor } from "../support/process.ts";

const EX_USAGE = 64;
const EX_CONFIG = 78;
const NOT_FOUND = 3;

test("what was archived is listed, looked up, compared and brought back", async (t) => {
  const database = await freshDatabase();
  const db = new pg.Pool({ connectionString: database.url });
  t.after(async () => {
    await db.end();
    await database.drop();
  });
  await migrate(database.url);
  const sandbox = await sandboxFor(t);
  const directory = join(sandbox.directory, "cold");
  const env = { DATABASE_URL: database.url, CARILLON_ARCHIVE_DIRECTORY: directory };
  const archive = (...args: string[]) => sandbox.run(["archive", ...args], env);

  const empty = await archive("ls");
  assert.deepEqual([empty.code, empty.stdout], [0, ""]);
  const week = await fillOldWeek(db, 30);
  const [{ id }] = (await db.query("select id from carillon.notifications where tenant = 2 limit 1")).rows;
  const store = directoryStore(directory);
  await retireAll(db, store);
  const [{ name, parts, from, to } = assert.fail()] = await listManifests(store, week);

  const listed = await archive("ls");
  const span = `${from.slice(0, 10)} to ${to.slice(0, 10)}`;
  assert.match(
    listed.stdout,
    new RegExp(`^${name}  week  ${span}  30 notifications  30 events  1 callbacks  0.0 MB\n$`),
  );
  assert.equal(listed.code, 0);

  const got = await archive("get", id.toUpperCase());
  assert.equal(got.code, 0, got.stderr);
  const { archive: where, tenants, notification, events } = JSON.parse(got.stdout);
  assert.deepEqual([where, tenants[notification.tenant], notification.id, events.length], [name, "acme", id, 1]);
  const missing = await archive("get", "019b8f00-0000-7000-8000-000000000000");
  assert.equal(missing.code, NOT_FOUND);
  assert.match(missing.stderr, /is in no archive of /);

  const sound = await archive("verify");
  assert.deepEqual([sound.code, sound.stdout], [0, `${name}  sound\n1 archives, 0 broken\n`]);

  const back = await archive("restore", week, "--days", "3");
  assert.equal(back.code, 0, back.stderr);
  assert.equal(back.stdout, "30 brought back, to be read for 3 days; 0 were there\n");
  assert.equal((await archive("restore", id)).stdout, "0 brought back, to be read for 30 days; 1 were there\n");

  await writeFile(join(directory, parts[0]?.key ?? ""), "damaged");
  const broken = await archive("verify", name);
  assert.equal(broken.code, 1);
  assert.match(
    broken.stdout,
    new RegExp(`^${name}  BROKEN  ${parts[0]?.key} has less than its \\d+ bytes\n1 archives, 1 broken\n`),
  );
  const halted = await archive("restore", name);
  assert.equal(halted.code, 1);
  assert.match(halted.stderr, /passed over: .* bytes$/m);
  const nothing = await archive("verify", "20200106");
  assert.deepEqual([nothing.code, nothing.stdout], [NOT_FOUND, ""]);
});

test("what is no command, and an archive that is not configured, are said and change nothing", async (t) => {
  const sandbox = await sandboxFor(t);
  const faults: [args: string[], says: RegExp][] = [
    [["get"], /archive get needs ID/],
    [["get", "x"], /x is no id of a notification/],
    [["ls", "x"], /archive ls takes no argument x/],
    [["restore"], /archive restore needs WEEK/],
    [["verify", "../x"], /\.\.\/x is no week like/],
    [["drop"], /there is no command archive drop/],
    [["ls", "--days", "3"], /archive ls has no option --days/],
  ];
  for (const [args, says] of faults) {
    const { code, stderr } = await sandbox.run(["archive", ...args]);
    assert.equal(code, EX_USAGE, args.join(" "));
    assert.match(stderr, says);
  }
  const days = await sandbox.run(["archive", "restore", "20260105", "--days", "0"]);
  assert.deepEqual([days.code, /--days must be/.test(days.stderr)], [EX_USAGE, true]);
  const unset = await sandbox.run(["archive", "ls"]);
  assert.equal(unset.code, EX_CONFIG);
  assert.match(unset.stderr, /archive: is not set/);
});
