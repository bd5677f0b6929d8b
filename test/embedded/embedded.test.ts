// The embedded PostgreSQL, with real processes and real kills.
//
// Most tests use one home after the other, because a first start is the slowest thing here (0.6 to 1.3 s). Waiting
// for a process that is not our child has no signal, so `gone` polls; everything else waits for events.

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, realpathSync, watch } from "node:fs";
import { chmod, chown, cp, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Embedded, EmbeddedError, type EmbeddedOptions, startEmbedded } from "#embedded/embedded.ts";
import { type Binaries, installedBinaries, packagedBinaries } from "#embedded/postgres-binaries.ts";
import { controllableServer, freshDatabase, serverPid, temporaryHome, testBinaries } from "../support/postgres.ts";

const isRoot = process.geteuid?.() === 0;
const onlyRoot = { skip: isRoot ? false : "needs root" };
const chosen: { binaries?: Binaries } = testBinaries();
const childScript = join(import.meta.dirname, "..", "support", "embedded-child.ts");
/** A normal user that is not the one the server runs as. */
const games = { uid: 5, gid: 60 };
const canGamesRunUs =
  isRoot && spawnSync(process.execPath, [childScript, "/dev/null/none"], { ...games, cwd: "/" }).status === 0;

const cleanups = new WeakMap<TestContext, (() => unknown)[]>();

/** Like t.after, but the last is done first: servers stop before their directories go. */
function afterwards(t: TestContext, cleanup: () => unknown): void {
  const known = cleanups.get(t);
  if (known) known.push(cleanup);
  else {
    const stack = [cleanup];
    cleanups.set(t, stack);
    t.after(async () => {
      for (const one of stack.reverse()) await one();
    });
  }
}

/** Used by one test after the other; each leaves it stopped. */
const sharedParent = await temporaryHome();
const sharedHome = join(sharedParent, "made", "by", "us");
after(() => rm(sharedParent, { recursive: true, force: true, maxRetries: 5 }));

async function newHomeFor(t: TestContext): Promise<string> {
  const home = await temporaryHome();
  afterwards(t, () => rm(home, { recursive: true, force: true, maxRetries: 5 }));
  return home;
}

/** Started in this process; stopped after the test, before the home is removed. */
async function startFor(t: TestContext, home: string, options: Partial<EmbeddedOptions> = {}): Promise<Embedded> {
  const server = await startEmbedded({ home, ...chosen, settings: { shared_buffers: "64MB" }, ...options });
  afterwards(t, () => server.stop());
  return server;
}

type Hello = { url: string; dataDirectory: string; socketDirectory: string; name?: string; error?: string };

/** Started in another process; killed after the test. */
function childFor(t: TestContext, home: string, then = "stay", user: { uid?: number; gid?: number } = {}) {
  const args = [childScript, home, chosen.binaries ? dirname(chosen.binaries.postgres) : "", then];
  const child = spawn(process.execPath, args, { ...user, cwd: "/", stdio: ["pipe", "pipe", "inherit"] });
  afterwards(t, () => kill(child));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => JSON.parse((await lines.next()).value ?? "null");
  const hello: Promise<Hello> = line();
  return { child, hello, line };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

async function connectFor(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  afterwards(t, () => client.end());
  return client;
}

const keep = "drop table if exists kept; create table kept as select 42 as n";

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}

async function gone(pid: number): Promise<void> {
  // The last of its processes are zombies for a moment, with an empty command line.
  while (existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, "utf8") !== "") await sleep(10);
}

/** The promise of a note, and the function that gets them. */
function notes() {
  const seen: string[] = [];
  const waiting: { text: string; resolve: () => void }[] = [];
  const onNote = (message: string) => {
    seen.push(message);
    for (const { text, resolve } of waiting.splice(0)) {
      if (message.includes(text)) resolve();
      else waiting.push({ text, resolve });
    }
  };
  const noted = (text: string) => new Promise<void>((resolve) => waiting.push({ text, resolve }));
  return { seen, onNote, noted };
}

const owners = `select application_name from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory'`;
const refused = (error: unknown) => error instanceof EmbeddedError && /in use by another Carillon/.test(error.message);

describe("the embedded PostgreSQL", () => {
  test("makes a database on the first start and keeps its data through a restart", async (t) => {
    const home = sharedHome;
    const first = await startFor(t, home);
    assert.equal(first.dataDirectory, join(realpathSync(home), "postgres", "data"));
    await query(first.url, "create table kept (n int); insert into kept values (42)");
    const rows = await query(
      first.url,
      "select name, setting from pg_settings where name in ('fsync','synchronous_commit','jit','listen_addresses','TimeZone')",
    );
    assert.deepEqual(Object.fromEntries(rows.map((row) => [row.name, row.setting])), {
      TimeZone: "UTC",
      fsync: "on",
      jit: "off",
      listen_addresses: "",
      synchronous_commit: "on",
    });
    await first.stop();
    await first.stop();
    assert.equal(existsSync(join(first.dataDirectory, "postmaster.pid")), false);

    const second = await startFor(t, home);
    assert.equal(second.url, first.url);
    assert.deepEqual(await query(second.url, "select n from kept"), [{ n: 42 }]);
    const psql = spawnSync("psql", [second.url, "-Atc", "select n from kept"], { encoding: "utf8" });
    if (psql.error === undefined) assert.equal(psql.stdout, "42\n", psql.stderr);
  });

  test("refuses a second owner in the same and in another process, and does not disturb the first", async (t) => {
    const home = sharedHome;
    const server = await startFor(t, home);
    const client = await connectFor(t, server.url);
    await client.query("create temp table session (n int)");
    const pid = serverPid(server);

    const rejected = await startEmbedded({ home, ...chosen }).catch((error: unknown) => error);
    assert.ok(refused(rejected), String(rejected));
    const { name, error } = await childFor(t, home).hello;
    assert.equal(name, "EmbeddedError");
    assert.ok(error?.includes(dirname(server.dataDirectory)) && error.includes(`process ${process.pid}`), error);

    assert.deepEqual((await client.query("select count(*)::int as n from session")).rows, [{ n: 0 }]);
    assert.equal(serverPid(server), pid);
    const held = (await query(server.url, owners)).map((row) => row.application_name);
    assert.deepEqual(held, [`carillon owner ${process.pid}`]);
  });

  test("has exactly one winner when several start at the same moment, on the first start and later", async (t) => {
    const home = await newHomeFor(t);
    for (const round of ["first", "later"]) {
      const children = [childFor(t, home)];
      const here = [1, 2].map(() => startEmbedded({ home, ...chosen }));
      const settledHere = await Promise.allSettled(here);
      const hellos = await Promise.all(children.map(({ hello }) => hello));

      const errors = settledHere.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
      errors.push(...hellos.flatMap(({ error }) => error ?? []));
      assert.equal(errors.length, 2, `${round}: ${errors.join("\n")}`);
      for (const error of errors) assert.match(error, /EmbeddedError: .*in use by another Carillon/);

      for (const one of settledHere) if (one.status === "fulfilled") await one.value.stop();
      for (const { child, line } of children) {
        child.stdin.end("stop\n");
        await line();
      }
    }
    assert.deepEqual(readdirSync(home), ["postgres"]);
  });

  test("leaves nothing half-made when it is killed in the middle of the first start", async (t) => {
    const home = await newHomeFor(t);
    const watcher = watch(home);
    const { child } = childFor(t, home);
    await once(watcher, "change");
    watcher.close();
    await kill(child);
    assert.match(readdirSync(home).join(), /^postgres\.new-/);

    const server = await startFor(t, home);
    assert.deepEqual(readdirSync(home), ["postgres"]);
    assert.deepEqual(await query(server.url, "select 1 as n"), [{ n: 1 }]);
  });

  test("stops when its parent is killed, and the next start has the committed data", async (t) => {
    const home = sharedHome;
    const { child, hello } = childFor(t, home);
    const { url, dataDirectory } = await hello;
    const pid = serverPid({ dataDirectory });
    await query(url, keep);
    const client = await connectFor(t, url);
    const ended = new Promise<void>((resolve) => client.once("end", resolve));
    await kill(child);
    await ended;
    await gone(pid);

    const server = await startFor(t, home);
    assert.deepEqual(await query(server.url, "select n from kept"), [{ n: 42 }]);
  });

  test("stops when its parent just ends", async (t) => {
    const { child, hello } = childFor(t, sharedHome, "leave");
    const exited = once(child, "exit");
    const pid = serverPid(await hello);
    assert.deepEqual(await exited, [0, null]);
    await gone(pid);
  });

  test("starts at once after a kill, while the old server is still stopping", async (t) => {
    const home = sharedHome;
    const { child, hello } = childFor(t, home);
    const { url } = await hello;
    await query(url, "drop table if exists kept; create table kept as select generate_series(1, 100000) as n");
    await kill(child);

    const server = await startFor(t, home);
    assert.deepEqual(await query(server.url, "select count(*)::int as n from kept"), [{ n: 100000 }]);
  });

  test("stops an orphan whose watcher was killed as well, and keeps its data", async (t) => {
    const home = sharedHome;
    const { child, hello } = childFor(t, home);
    const { url, dataDirectory } = await hello;
    const pid = serverPid({ dataDirectory });
    for (const watcher of watchersOf(pid)) process.kill(watcher, "SIGKILL");
    await query(url, keep);
    await kill(child);
    assert.deepEqual(await query(url, "select n from kept"), [{ n: 42 }], "the orphan lives");

    const { seen, onNote } = notes();
    const server = await startFor(t, home, { onNote });
    assert.match(seen.join("\n"), /stopping a PostgreSQL that outlived its Carillon/);
    assert.notEqual(serverPid(server), pid);
    assert.deepEqual(await query(server.url, "select n from kept"), [{ n: 42 }]);
  });

  test("is not kept from starting by a stale lock file, even if its pid was given to another process", async (t) => {
    const home = sharedHome;
    const { child, hello } = childFor(t, home);
    const { dataDirectory } = await hello;
    const lockFile = join(dataDirectory, "postmaster.pid");
    const [, ...lines] = readFileSync(lockFile, "utf8").split("\n");
    const pid = serverPid({ dataDirectory });
    process.kill(pid, "SIGKILL");
    await kill(child);
    await gone(pid);
    const { uid, gid } = await stat(dataDirectory);
    // PostgreSQL believes in a number only if it is of a process of the same user.
    const other = spawn("sleep", ["600"], isRoot ? { uid, gid } : {});
    afterwards(t, () => other.kill());

    for (const number of [other.pid, process.pid]) {
      await writeFile(lockFile, [number, ...lines].join("\n"));
      await chown(lockFile, uid, gid);
      await (await startEmbedded({ home, ...chosen })).stop();
    }
    await writeFile(lockFile, "");
    await chown(lockFile, uid, gid);
    await utimes(lockFile, 0, 0);
    await (await startEmbedded({ home, ...chosen })).stop();
    assert.equal(other.exitCode, null);
    assert.equal(other.signalCode, null);
  });

  test("starts the server again when it is killed, and holds the owner lock again", async (t) => {
    const { onNote, noted } = notes();
    const server = await startFor(t, sharedHome, { onNote });
    await query(server.url, keep);
    const pid = serverPid(server);
    const restarted = noted("PostgreSQL started");
    process.kill(pid, "SIGKILL");
    await restarted;
    assert.notEqual(serverPid(server), pid);
    assert.deepEqual(await query(server.url, "select n from kept"), [{ n: 42 }]);
    assert.deepEqual(await query(server.url, owners), [{ application_name: `carillon owner ${process.pid}` }]);
  });

  test("takes the owner lock again when only its connection is lost", async (t) => {
    const server = await startFor(t, sharedHome);
    const client = await connectFor(t, server.url);
    const { rows } = await client.query(
      "select pid, pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'",
    );
    const taken = "select from pg_locks where locktype = 'advisory' and pid <> all ($1)";
    while ((await client.query(taken, [rows.map(({ pid }) => pid)])).rowCount === 0) await sleep(10);
    while ((await client.query(owners)).rowCount !== 1) await sleep(10);
    assert.deepEqual((await client.query(owners)).rows, [{ application_name: `carillon owner ${process.pid}` }]);
  });

  test("can be stopped while the server cannot be started again", async (t) => {
    const { onNote, noted } = notes();
    const server = await startFor(t, sharedHome, { onNote });
    const pid = serverPid(server);
    const control = join(server.dataDirectory, "global", "pg_control");
    await rename(control, `${control}.away`);
    afterwards(t, () => rename(`${control}.away`, control));
    const failed = noted("could not be started again yet");
    process.kill(pid, "SIGKILL");
    await failed;
    await server.stop();
    await gone(pid);
  });

  test("keeps its log from growing for ever", async (t) => {
    const log = join(sharedHome, "postgres", "postgres.log");
    await truncate(log, 11_000_000);
    await startFor(t, sharedHome);
    assert.equal((await stat(`${log}.1`)).size, 11_000_000);
    assert.ok((await stat(log)).size < 10_000);
  });

  test("reports a broken data directory with the last lines of the server's log", async (t) => {
    const home = sharedHome;
    const server = await startFor(t, home);
    await server.stop();
    const control = join(server.dataDirectory, "global", "pg_control");
    await rename(control, `${control}.away`);
    afterwards(t, () => rename(`${control}.away`, control));
    await assert.rejects(startEmbedded({ home, ...chosen }), (error: unknown) => {
      assert.ok(error instanceof EmbeddedError);
      assert.match(error.message, /PostgreSQL did not start in .*\n.*pg_control/s);
      return true;
    });
    assert.equal(existsSync(join(server.dataDirectory, "postmaster.pid")), false);
  });

  const old = installedBinaries(15);
  const skipOld = { skip: old && !chosen.binaries ? false : "needs PostgreSQL 15 beside the packaged one" };
  test("reports a data directory of another major version", skipOld, async (t) => {
    const home = await newHomeFor(t);
    if (old) await (await startEmbedded({ home, binaries: old })).stop();
    await assert.rejects(startEmbedded({ home }), /EmbeddedError: .*initialized by PostgreSQL version 15/s);
  });

  test("can be moved, below a path that is too long for a socket or has odd characters too", async (t) => {
    const parent = await newHomeFor(t);
    let home = sharedHome;
    for (const name of ["x".repeat(100), "a, b 'c' \"d\" %20é"]) {
      await rename(home, join(parent, name));
      home = join(parent, name);
      const server = await startFor(t, home);
      assert.notEqual(dirname(server.socketDirectory), dirname(server.dataDirectory));
      assert.equal((await stat(server.socketDirectory)).mode & 0o777, 0o700);
      assert.deepEqual(await query(server.url, "select 1 as n"), [{ n: 1 }]);
      await server.stop();
      assert.equal(existsSync(server.socketDirectory), false);
    }
    await rename(home, sharedHome);
  });

  test("refuses a socket directory that another user made", onlyRoot, async (t) => {
    // In a home with a short path it is beside the data; the rule is the same for one in /tmp.
    const { socketDirectory, stop } = await startFor(t, sharedHome);
    await stop();
    const { uid, gid } = await stat(socketDirectory);
    await chown(socketDirectory, games.uid, games.gid);
    afterwards(t, () => chown(socketDirectory, uid, gid));
    await assert.rejects(startEmbedded({ home: sharedHome, ...chosen }), /EmbeddedError: .*made by another user/);
  });

  test("lets no other user connect, read the data or read the password", onlyRoot, async (t) => {
    const server = await startFor(t, sharedHome);
    const base = dirname(server.dataDirectory);
    const asGames = (script: string) => spawnSync("/bin/sh", ["-c", script], { ...games, cwd: "/" }).status === 0;
    assert.ok(asGames(`cd ${base}`), "the test itself works");
    for (const path of ["data", "data/PG_VERSION", "password", "postgres.log", "run", "run/.s.PGSQL.5432"]) {
      assert.equal(asGames(`ls ${base}/${path}/ || cat ${base}/${path}`), false, path);
    }
    const connect = `require("net").connect("${server.socketDirectory}/.s.PGSQL.5432").on("connect", () => process.exit(0))`;
    const tried = spawnSync(process.execPath, ["-e", connect], { ...games, cwd: "/", encoding: "utf8" });
    if (canGamesRunUs) assert.match(tried.stderr, /EACCES/);
    const wrong = server.url.replace(server.connection.password, "wrong");
    await assert.rejects(query(wrong, "select 1"), { code: "28P01" });
  });

  test(
    "run by root below a directory that its user cannot enter, lives elsewhere and is linked",
    onlyRoot,
    async (t) => {
      const closed = await newHomeFor(t);
      await chmod(closed, 0o700);
      const home = join(closed, "home");
      const base = `/var/lib/carillon/${createHash("sha256").update(home).digest("hex").slice(0, 12)}`;
      afterwards(t, () => rm(base, { recursive: true, force: true }));
      const { seen, onNote } = notes();
      const first = await startFor(t, home, { onNote });
      assert.match(seen.join("\n"), /lives outside the home/);
      assert.equal(first.dataDirectory, `${base}/data`);
      assert.equal(realpathSync(join(home, "postgres")), base);
      await query(first.url, keep);
      await first.stop();
      const second = await startFor(t, home);
      assert.deepEqual(await query(second.url, "select n from kept"), [{ n: 42 }]);
      assert.equal((await stat(closed)).mode & 0o777, 0o700);
    },
  );

  test("copies binaries that its user cannot reach, complete even without install scripts", onlyRoot, async (t) => {
    const closed = await newHomeFor(t);
    const source = dirname(dirname(dirname((await packagedBinaries()).postgres)));
    const root = join(closed, "package");
    await cp(source, root, { recursive: true, verbatimSymlinks: true });
    await chmod(closed, 0o700);
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    // A version of its own, so the test finds no copy and removes none that somebody uses.
    await writeFile(join(root, "package.json"), JSON.stringify({ version: `${version}-test-${process.pid}` }));
    const links: { target: string }[] = JSON.parse(await readFile(join(root, "native", "pg-symlinks.json"), "utf8"));
    for (const { target } of links) await rm(join(root, target));
    const copy = `/var/lib/carillon/bin/${version}-test-${process.pid}`;
    afterwards(t, () => rm(copy, { recursive: true, force: true }));

    const bin = join(root, "native", "bin");
    const unreachable = { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
    const server = await startFor(t, chosen.binaries ? await newHomeFor(t) : sharedHome, { binaries: unreachable });
    assert.equal(
      execFileSync("readlink", [`/proc/${serverPid(server)}/exe`], { encoding: "utf8" }).trim(),
      `${copy}/native/bin/postgres`,
    );
  });

  const skipUser = { skip: canGamesRunUs ? false : "needs root, and a repository that other users can read" };
  test("works for a normal user", skipUser, async (t) => {
    const home = await newHomeFor(t);
    await chown(home, games.uid, games.gid);
    const { child, hello, line } = childFor(t, home, "stay", games);
    const { url, dataDirectory, error } = await hello;
    assert.equal(error, undefined);
    assert.equal((await stat(dataDirectory)).uid, games.uid);
    assert.deepEqual(await query(url, "select 1 as n"), [{ n: 1 }]);
    child.stdin.end("stop\n");
    assert.equal(await line(), "stopped");

    const server = await startFor(t, home);
    assert.deepEqual(await query(server.url, "select 1 as n"), [{ n: 1 }], "root runs it as that user");
  });
});

describe("the test helpers", () => {
  test("take a server away and bring it back with the same url and data", async (t) => {
    const server = await controllableServer();
    afterwards(t, () => server.remove());
    await query(server.url, keep);
    for (const how of ["fast", "immediate"] as const) {
      await server.stop(how);
      await assert.rejects(query(server.url, "select 1"), { code: "ENOENT" });
      await server.start();
      assert.deepEqual(await query(server.url, "select n from kept"), [{ n: 42 }]);
    }
  });

  test("give databases that do not know of each other", async () => {
    const [one, two] = await Promise.all([freshDatabase(), freshDatabase()]);
    await query(one.url, "create table only_here (n int)");
    await assert.rejects(query(two.url, "select * from only_here"), { code: "42P01" });
    await one.drop();
    assert.deepEqual(await query(two.url, "select 1 as n"), [{ n: 1 }]);
    await two.drop();
  });
});

/** The watcher shares the process group of its server. */
function watchersOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== pid)
    .map(Number)
    .filter((other) => {
      try {
        const [, state] = readFileSync(`/proc/${other}/stat`, "utf8").split(") ");
        return Number(state?.split(" ")[2]) === pid;
      } catch {
        return false;
      }
    });
}
