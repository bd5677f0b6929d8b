// carillon backup and restore: what was accepted before a backup is in what is made of it, and no half backup passes for a whole one.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { barOf } from "#cli/progress.ts";
import { sizeOf } from "#cli/run/times.ts";
import { takeBackup } from "#embedded/backup.ts";
import { copyFile } from "#embedded/copy.ts";
import { EmbeddedError, findRunning } from "#embedded/embedded.ts";
import { type Entry, MANIFEST, readManifest, writeManifest } from "#embedded/manifest.ts";
import { checkBackup, restoreBackup } from "#embedded/restore.ts";
import { logFilesBetween } from "#embedded/wal.ts";
import { type Sandbox, sandboxFor } from "../support/process.ts";
import { ask, email } from "../support/service.ts";
import { fullCount, tallied } from "../support/tallies.ts";
import { until } from "../support/until.ts";

const [FAILED, NOT_FOUND, REFUSED] = [1, 3, 4];

/** Half-way: nothing of it stays, in the directory or in the database. */
async function breakOff({ home, connect }: Sandbox, target: string): Promise<void> {
  const parent = dirname(target);
  // What a kill left of an earlier one is removed as well.
  await mkdir(`${target}.new-999999999-0a0b0c0d`, { recursive: true });
  const stop = new AbortController();
  const source = { url: (await findRunning(home)) ?? "", base: join(home, "postgres") };
  const onProgress = (done: number) => done > 1_000_000 && stop.abort(new Error("enough"));
  const options = { version: "0.7.0", signal: stop.signal, onProgress };
  await assert.rejects(takeBackup(source, target, options), /enough/);
  assert.deepEqual(await readdir(parent), []);
  const client = await connect();
  assert.deepEqual((await client.query("select slot_name from pg_replication_slots")).rows, []);
}

test("a backup taken under load, restored elsewhere, has all that was accepted before it, and its ledger balances", async (t) => {
  const sandbox = await sandboxFor(t);
  const backup = join(sandbox.directory, "backups", "monday");
  const service = await sandbox.start();
  await breakOff(sandbox, backup);
  const before: string[] = [];
  let isOver = false;
  /** Those whose acceptance was answered. */
  const accepted: string[] = [];
  const send = async (n: number) => {
    const { status, body } = await service.ask("POST", "/v1/notifications", email(n));
    if (status === 202) accepted.push(body.notificationId);
  };
  const senders = Array.from({ length: 4 }, async (_, sender) => {
    for (let n = 0; !isOver; n++) await send(sender * 1_000_000 + n);
  });
  await until(async () => (accepted.length > 200 ? true : undefined));
  before.push(...accepted);
  const { next } = await ask(service, "/v1/events?limit=1000");
  const made = await sandbox.run(["backup", backup, "--json"]);
  const during = accepted.length - before.length;
  isOver = true;
  await Promise.all(senders);
  assert.equal(made.code, 0, made.stderr);
  assert.ok(during > 0, "others sent meanwhile");
  const { directory, files, bytes, startLsn, stopLsn } = JSON.parse(made.stdout);
  assert.deepEqual([directory, files > 500, bytes > 20_000_000, startLsn !== stopLsn], [backup, true, true, true]);

  for (const path of [backup, join(backup, "data"), join(backup, "data", "base")]) {
    assert.equal((await stat(path)).mode & 0o777, 0o700, path);
  }
  for (const path of ["password", "data/PG_VERSION", "data/global/pg_control", MANIFEST]) {
    assert.equal((await stat(join(backup, path))).mode & 0o777, 0o600, path);
  }
  assert.deepEqual(await readdir(dirname(backup)), ["monday"], "nothing else is left there");
  assert.ok(!existsSync(join(backup, "data", "postmaster.pid")));

  const again = await sandbox.run(["backup", backup]);
  assert.equal(again.code, FAILED);
  assert.match(again.stderr, /monday is not empty: name a directory that is not there yet/);
  const taken = await sandbox.run(["restore", backup]);
  assert.equal(taken.code, FAILED);
  assert.match(taken.stderr, /There is a database in .*, and it is left as it is/);
  assert.match((await sandbox.run(["restore", backup, "--check"])).stdout, /is sound: \d+ files/);

  const other = await sandboxFor(t);
  const restored = await other.run(["restore", backup]);
  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, /has the database as it was at 20/);
  // Nothing is sent while we look.
  const second = await other.start({ CARILLON_ROLES: "api" });
  const ledger = await ask(second, "/v1/ledger");
  assert.equal(ledger.balanced, true, JSON.stringify(ledger));
  assert.ok(ledger.accepted >= before.length && ledger.accepted <= accepted.length, JSON.stringify(ledger));
  for (const id of before) assert.equal((await second.ask("GET", `/v1/notifications/${id}`)).status, 200, id);
  // A follower of the first must not take other facts for those that it has not seen yet.
  const { status, body } = await second.ask("GET", `/v1/events?after=${next}`);
  assert.deepEqual([status, body.code], [410, "RESET"]);
  assert.equal((await second.ask("POST", "/v1/notifications", email("after"))).status, 202);
  assert.equal((await second.end("SIGTERM")).code, 0);
  await assertTallied(other);
});

/** Whoever counts goes on where the backup was taken, and comes to what the whole record says. */
async function assertTallied(sandbox: Sandbox): Promise<void> {
  const service = await sandbox.start({ CARILLON_ROLES: "api,keeper" });
  const client = await sandbox.connect();
  await until(async () =>
    (await client.query("select from carillon.untallied limit 1")).rows.length === 0 ? true : undefined,
  );
  for (const grain of ["minute", "hour", "day", "ever"] as const) {
    const found = await tallied(client, grain);
    assert.ok(found.length > 0, "something was counted");
    assert.deepEqual(found, await fullCount(client, grain), grain);
  }
  assert.equal((await ask(service, "/v1/ledger")).balanced, true);
  assert.equal((await service.end("SIGTERM")).code, 0);
}

/** A small one, whole as far as checksums go. */
async function makeSmall(directory: string): Promise<void> {
  const files = { "data/PG_VERSION": "18\n", "data/pg_xact/0000": "x".repeat(8192), password: "secret\n" };
  await mkdir(join(directory, "data", "pg_xact"), { recursive: true });
  const entries: Entry[] = ["data", "data/pg_xact"].map((path) => ({ path, bytes: 0 }));
  for (const [path, text] of Object.entries(files)) {
    await writeFile(join(directory, path), text);
    entries.push({ path, ...(await copyFile(join(directory, path), undefined)) });
  }
  const [startedAt, endedAt] = ["2026-11-18T00:00:00.000Z", "2026-11-18T00:00:01.000Z"];
  const head = { carillon: "0.7.0", postgres: "18.0", startedAt, endedAt, startLsn: "0/1", stopLsn: "0/2" };
  await writeManifest(directory, { head, entries });
}

test("a backup that is cut off, damaged or incomplete is refused, and nothing is made of it", async (t) => {
  const sandbox = await sandboxFor(t);
  const [whole, broken] = [join(sandbox.directory, "whole"), join(sandbox.directory, "broken")];
  await makeSmall(whole);
  assert.equal((await checkBackup(whole)).files, 3);
  const manifest = join(broken, MANIFEST);
  const lines = (await readFile(join(whole, MANIFEST), "utf8")).trimEnd().split("\n");
  const withLines = (some: string[]) => writeFile(manifest, `${some.join("\n")}\n`);
  const outside = async () => {
    await rm(manifest);
    const { head } = await readManifest(whole);
    await writeManifest(broken, { head, entries: [{ path: "data/../../x", bytes: 1, sha256: "" }] });
  };
  const faults: { [title: string]: { spoil: () => Promise<unknown>; says: RegExp } } = {
    "a file that was cut off": {
      spoil: () => truncate(join(broken, "data", "pg_xact", "0000"), 100),
      says: /is damaged: data\/pg_xact\/0000 is not what was written/,
    },
    "a file that is missing": {
      spoil: () => rm(join(broken, "data", "PG_VERSION")),
      says: /is not whole: data\/PG_VERSION is missing/,
    },
    "a manifest that is missing": { spoil: () => rm(manifest), says: /is no backup: it has no manifest/ },
    "a manifest that was cut off": { spoil: () => withLines(lines.slice(0, 4)), says: /was cut off or changed/ },
    "a line less": { spoil: () => withLines(lines.filter((_, n) => n !== 3)), says: /was cut off or changed/ },
    "half of the last line": { spoil: () => truncate(manifest, 700), says: /was cut off or changed/ },
    "a file outside of it": { spoil: outside, says: /names a file outside of itself: data\/\.\.\/\.\.\/x/ },
  };
  for (const [title, { spoil, says }] of Object.entries(faults)) {
    await cp(whole, broken, { recursive: true });
    await spoil();
    const isRefused = (error: unknown) => error instanceof EmbeddedError && says.test(error.message);
    await assert.rejects(checkBackup(broken), isRefused, title);
    await assert.rejects(restoreBackup(broken, sandbox.home), isRefused, title);
    assert.deepEqual(await readdir(sandbox.home).catch(() => []), [], title);
    await rm(broken, { recursive: true });
  }
  await cp(whole, broken, { recursive: true });
  await truncate(join(broken, "password"), 3);
  const cut = await sandbox.run(["restore", broken]);
  assert.deepEqual([cut.code, cut.stdout], [FAILED, ""]);
  assert.match(cut.stderr, /^carillon: The backup .*broken is damaged: password is not what was written\.\n$/);
  assert.equal((await sandbox.run(["restore", join(broken, "none")])).code, NOT_FOUND);
  const foreign = await sandbox.run(["backup", broken], { DATABASE_URL: "postgres://u@127.0.0.1:1/x" });
  assert.equal(foreign.code, REFUSED);
  assert.match(foreign.stderr, /DATABASE_URL names another/);
});

test("the log that is needed goes from the label's segment to the last byte before the end", () => {
  const label = "START WAL LOCATION: 0/FE000028 (file 0000000200000000000000FE)\nCHECKPOINT LOCATION: 0/FE000080\n";
  const size = 16 * 1024 * 1024;
  assert.deepEqual(logFilesBetween(label, "0/FF000000", size), ["0000000200000000000000FE"]);
  assert.deepEqual(logFilesBetween(label, "1/00000001", size), [
    "0000000200000000000000FE",
    "0000000200000000000000FF",
    "000000020000000100000000",
  ]);
  assert.throws(() => logFilesBetween("", "0/1", size), EmbeddedError);
});

test("a bar shows how far it has come, and fits the line", () => {
  assert.equal(barOf("backup", 0, 0, String, 80).length <= 79, true);
  assert.equal(barOf("b", 500, 1000, sizeOf, 40), "b [####----]  50 %  500 bytes of 1.0 kB");
  for (const columns of [5, 20, 40, 200]) assert.ok(barOf("backup", 7, 9, sizeOf, columns).length < columns);
});
