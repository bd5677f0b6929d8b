// The PostgreSQL that everybody shares: BENCH_DATABASE_URL, else an installed one that is started in
// a temporary directory, else the one that comes with Carillon.
//
// Loopback TCP for all, because Redis is reached that way too. What a crash must not lose is not
// lost: fsync and synchronous_commit are on. The sizes are raised so that no checkpoint falls
// into one run and not into another. The files of its log are made before anything is measured, as a
// server has them that has been at work for a while: while a new one of 16 MB is filled with zeros,
// nobody's commit gets on, for some 50 ms.

import { execFile } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { chown } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { freePort, onCleanUp, startProgram, temporaryDirectory, whenReady } from "./program.ts";
import { runSql } from "./sql.ts";

export type Server = { url: string; pid?: number; origin: string; settings: string };

const run = promisify(execFile);
const DEBIAN = "/usr/lib/postgresql/15/bin";
const SETTINGS = {
  fsync: "on",
  synchronous_commit: "on",
  shared_buffers: "1GB",
  max_wal_size: "8GB",
  min_wal_size: "4GB",
  max_connections: "200",
};
const settings = Object.entries(SETTINGS)
  .map(([name, value]) => `${name} ${value}`)
  .join(", ");
/** Ours is not handed on: PG… variables would change what the programs do. */
const env = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

export async function startPostgres(givenUrl: string | undefined): Promise<Server> {
  if (givenUrl) return { url: givenUrl, origin: "BENCH_DATABASE_URL", settings: "not ours" };
  if (existsSync(join(DEBIAN, "postgres"))) return startInstalled();
  return startPackaged();
}

async function startInstalled(): Promise<Server> {
  const directory = await temporaryDirectory("postgres");
  const user = process.getuid?.() === 0 ? await userNamed("postgres") : undefined;
  if (user) await chown(directory, user.uid, user.gid);
  const data = join(directory, "data");
  const initdb = ["-D", data, "-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  await run(join(DEBIAN, "initdb"), initdb, { cwd: directory, env, ...user });

  const port = await freePort();
  const options = { ...SETTINGS, port, listen_addresses: "127.0.0.1", unix_socket_directories: directory };
  const log = openSync(join(directory, "log"), "a");
  const server = await startProgram(
    join(DEBIAN, "postgres"),
    ["-D", data, ...Object.entries(options).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
    // SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to leave.
    { cwd: directory, env, ...(user && { user }), stdio: ["ignore", log, log], signal: "SIGINT" },
  );
  const serverUrl = `postgres://bench@127.0.0.1:${port}`;
  await whenReady(server, "PostgreSQL", untilAnswering(`${serverUrl}/postgres`));
  await runSql(`${serverUrl}/postgres`, "create database bench");
  await makeLog(`${serverUrl}/postgres`);
  return { url: `${serverUrl}/bench`, pid: server.pid, origin: DEBIAN, settings };
}

async function startPackaged(): Promise<Server> {
  const { startEmbedded } = await import("../src/embedded/embedded.ts");
  const home = await temporaryDirectory("postgres");
  const { url, stop } = await startEmbedded({ home, settings: SETTINGS });
  onCleanUp(stop);
  await makeLog(url);
  return { url, origin: "packaged with Carillon", settings };
}

/** As many files as `min_wal_size` keeps. Those that are behind are those to come once there was a checkpoint. */
async function makeLog(url: string): Promise<void> {
  await runSql(
    url,
    `select count(pg_switch_wal()) from generate_series(1, 256) n where pg_logical_emit_message(true, 'bench', n::text) is not null`,
  );
  // The first says from where on the log is needed; what is before that is kept by the second.
  for (let n = 0; n < 2; n++) await runSql(url, "checkpoint");
}

async function untilAnswering(url: string): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await sleep(50);
    }
  }
}

async function userNamed(name: string): Promise<{ uid: number; gid: number }> {
  const [uid, gid] = await Promise.all(
    ["-u", "-g"].map(async (flag) => Number((await run("id", [flag, name])).stdout)),
  );
  if (uid === undefined || gid === undefined) throw new Error(`there is no user ${name}`);
  return { uid, gid };
}
