// Real PostgreSQL for tests: a throw-away server, a fresh database, and a server that can be taken away.
//
// Set CARILLON_TEST_PG_MAJOR to run on an installed PostgreSQL of that version instead of the packaged one, and
// TEST_DATABASE_URL (a superuser's) to share one server between test files, which saves 0.7 s for each of them. On such a server
// TEST_TEMPLATE is a database that is migrated already: a copy of it takes a third of the time that migrating does.

import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, statfsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { type Embedded, type EmbeddedOptions, startEmbedded } from "#embedded/embedded.ts";
import { installedBinaries } from "#embedded/postgres-binaries.ts";
import { migrate } from "#store/connection/migrate.ts";

/** Nobody pulls the plug in a test: a kill -9 of the server loses nothing even without fsync. */
const fast = { fsync: "off", shared_buffers: "64MB" };

/** A database is a thousand files: to make it and to drop it takes five times as long on a disk. */
const IN_MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 1024 ** 3;

function serversPlace(): string {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return process.platform === "linux" && bavail * bsize >= ROOM_BYTES ? IN_MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Everybody may enter it, as the server of a root test runs as another user. */
export async function temporaryHome(place = tmpdir()): Promise<string> {
  const home = await mkdtemp(join(place, "carillon-test-"));
  await chmod(home, 0o755);
  return home;
}

export function testBinaries(): Pick<EmbeddedOptions, "binaries"> {
  const major = process.env.CARILLON_TEST_PG_MAJOR;
  if (!major) return {};
  const binaries = installedBinaries(Number(major));
  if (!binaries) throw new Error(`CARILLON_TEST_PG_MAJOR is ${major}, but no PostgreSQL ${major} is installed`);
  return { binaries };
}

/** The postmaster of a running server. */
export function serverPid(server: { dataDirectory: string }): number {
  return Number.parseInt(readFileSync(join(server.dataDirectory, "postmaster.pid"), "utf8"), 10);
}

export type TestServer = {
  url: string;
  /** Makes a migrated database that others are copied from, and answers with its name. */
  makeTemplate(): Promise<string>;
  stop(): Promise<void>;
};

/** Room for several files at once, each with replicas of its own. */
export async function testServer(): Promise<TestServer> {
  const { url, stop, remove } = await controllableServer({ max_connections: "300" });
  return {
    url,
    async makeTemplate() {
      const name = "template_migrated";
      await query(url, `create database ${name}`);
      await migrate(withDatabase(url, name));
      // Nobody connects to it, so that it can be copied at any time.
      await query(url, `alter database ${name} with allow_connections false`);
      return name;
    },
    stop: async () => {
      await stop("fast");
      await remove();
    },
  };
}

export type ControllableServer = {
  url: string;
  start(): Promise<void>;
  /** `fast` says goodbye to its clients; `immediate` drops them and recovers at the next start. */
  stop(how: "fast" | "immediate"): Promise<void>;
  /** Stops it if it runs, and removes its data. */
  remove(): Promise<void>;
};

/** Running at first. The url and the data stay the same through stops and starts. */
export async function controllableServer(settings: { [name: string]: string } = {}): Promise<ControllableServer> {
  const home = await temporaryHome(serversPlace());
  let server: Embedded | undefined;
  const removeAtExit = () => {
    // A process that forgot to stop it ends the server by ending; waiting for that is not possible here.
    signal(server, "SIGKILL");
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  };
  process.once("exit", removeAtExit);
  const start = async () => {
    server ??= await startEmbedded({ home, settings: { ...fast, ...settings }, ...testBinaries() });
    return server.url;
  };
  const stop = async (how: "fast" | "immediate") => {
    if (how === "immediate") signal(server, "SIGQUIT");
    await server?.stop();
    server = undefined;
  };
  return {
    url: await start(),
    start: async () => void (await start()),
    stop,
    remove: async () => {
      await stop("fast");
      process.off("exit", removeAtExit);
      await rm(home, { recursive: true, force: true });
    },
  };
}

function signal(server: Embedded | undefined, name: NodeJS.Signals): void {
  try {
    if (server) process.kill(serverPid(server), name);
  } catch {
    // A test has killed it before.
  }
}

export type FreshDatabase = { url: string; drop(): Promise<void> };

let privateServer: { started: Promise<TestServer>; databases: number } | undefined;

/** A new database as a new installation has it. */
export async function migratedDatabase(): Promise<FreshDatabase> {
  const template = process.env.TEST_TEMPLATE;
  const database = await freshDatabase(template);
  if (!template) await migrate(database.url);
  return database;
}

/** A new empty database; without TEST_DATABASE_URL, on a server of this process that goes with its last database. */
export async function freshDatabase(template?: string): Promise<FreshDatabase> {
  const shared = process.env.TEST_DATABASE_URL;
  if (!shared) {
    privateServer ??= { started: testServer(), databases: 0 };
    privateServer.databases += 1;
  }
  const server = privateServer;
  const adminUrl = shared ?? (await server?.started)?.url ?? "";
  const name = `test_${randomBytes(6).toString("hex")}`;
  await query(adminUrl, `create database ${name}${template ? ` template ${template}` : ""}`);
  return {
    url: withDatabase(adminUrl, name),
    drop: async () => {
      if (shared || !server) return query(adminUrl, `drop database if exists ${name} with (force)`);
      server.databases -= 1;
      if (server.databases > 0) return query(adminUrl, `drop database if exists ${name} with (force)`);
      if (privateServer === server) privateServer = undefined;
      await (await server.started).stop();
    },
  };
}

/** By hand, because `new URL` refuses the empty host of a URL with a socket directory. */
function withDatabase(url: string, name: string): string {
  return url.replace(/^(\w+:\/\/[^/?]*)(\/[^?]*)?/, `$1/${name}`);
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}
