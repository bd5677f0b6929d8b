// The PostgreSQL that Carillon brings along: made on the first start, supervised, and stopped with us.
//
// It listens on a Unix socket only, in a directory that only its user can enter, and wants a password as well.
// Read place.ts for where it lives and server.ts for how its process is kept and recognised.
//
// State: one server process at a time, restarted for ever if it dies, and one connection to it that holds the
// owner lock and carries our pid, so that SQL can tell who owns the database. Neither keeps our process alive:
// when nothing else is left to do we exit, and the server stops because its leash does.

import { readFile, rm, rmdir } from "node:fs/promises";
import { Socket } from "node:net";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { claimSocketDirectory, findPlace, type Note, type Place, populate, socketName } from "./place.ts";
import { type Binaries, EmbeddedError, packagedBinaries, runnableBinaries } from "./postgres-binaries.ts";
import { boundLog, inUse, launchServer, makeWay, type Program, stopProgram } from "./server.ts";

export { EmbeddedError };

export type Connection = { host: string; port: number; user: string; password: string; database: string };

export type Embedded = {
  connection: Connection;
  /** For libpq and for pg alike. */
  url: string;
  dataDirectory: string;
  socketDirectory: string;
  /** What keeps the server running while a process has it open; undefined while there is none. */
  leash(): Socket | undefined;
  /** A fast shutdown; resolves when the process is gone. May be called at any time and again. */
  stop(): Promise<void>;
};

export type EmbeddedOptions = {
  /** Created if missing. */
  home: string;
  binaries?: Binaries;
  settings?: Record<string, string>;
  /** Facts worth a log line. */
  onNote?: Note;
};

const defaultSettings = {
  // What was accepted survives a power cut.
  fsync: "on",
  synchronous_commit: "on",
  timezone: "UTC",
  log_timezone: "UTC",
  max_connections: "100",
  shared_buffers: "256MB",
  max_wal_size: "2GB",
  // Our statements are short; compiling them costs more than it saves.
  jit: "off",
};

/** What this module relies on. */
export const fixedSettings = (socketDirectory: string) => ({
  listen_addresses: "",
  port: "5432",
  unix_socket_directories: socketDirectory,
  unix_socket_permissions: "0700",
  log_destination: "stderr",
  logging_collector: "off",
});

/** The letters of "carillon" as a number. Taken in the database postgres, so it meets no lock of the application. */
const ownerLock = "7161130679611977582";
const longestBackoffMs = 5_000;
/** A server that ran this long was well: its next death is a new story and is answered at once. */
const healthyAfterMs = 60_000;
/** If only the postmaster was killed, its other processes notice at the end of their statement. */
const patienceMs = 30_000;

export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const home = resolve(options.home);
  try {
    return await start(home, options);
  } catch (cause) {
    if (cause instanceof EmbeddedError || !(cause instanceof Error && "code" in cause)) throw cause;
    // The system refused something: a full disk, missing permission.
    throw new EmbeddedError(`The embedded PostgreSQL in ${home} could not be started: ${cause.message}.`, { cause });
  }
}

/** The URL of the database of a home while a Carillon runs there; undefined when none does. */
export async function findRunning(home: string): Promise<string | undefined> {
  const place = await findPlace(resolve(home), () => undefined);
  const { connection, url } = await wayTo(place);
  try {
    const { socket } = await connect(connection, "carillon");
    socket.destroy();
    return url;
  } catch (error) {
    if (isNobodyThere(error)) return undefined;
    throw error;
  }
}

export async function wayTo(place: Place): Promise<{ socketDirectory: string; connection: Connection; url: string }> {
  const socketDirectory = await claimSocketDirectory(place);
  const password = (await readFile(place.passwordFile, "utf8")).trim();
  return {
    socketDirectory,
    connection: { host: socketDirectory, port: 5432, user: "carillon", password, database: "carillon" },
    url: `postgresql://carillon:${password}@/carillon?host=${encodeURIComponent(socketDirectory)}&port=5432`,
  };
}

const isNobodyThere = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ECONNREFUSED");

async function start(home: string, options: EmbeddedOptions): Promise<Embedded> {
  const note = options.onNote ?? (() => undefined);
  const place = await findPlace(home, note);
  const binaries = await runnableBinaries(options.binaries ?? (await packagedBinaries()), place.user, place.copies);
  await populate(place, binaries.initdb);
  const { socketDirectory, connection, url } = await wayTo(place);
  const settings = { ...defaultSettings, ...options.settings, ...fixedSettings(socketDirectory) };
  const stopping = new AbortController();
  let hasRun = false;
  let latest: Program | undefined;

  /** One try to have a server that is ours. */
  const launch = async (): Promise<Program> => {
    const startedAt = performance.now();
    await makeWay(place, note);
    await refuseUnseenServer(place, connection);
    // Nobody listens, and the lock that counts is the one on the data; a stale one here would only be in the way.
    await rm(join(socketDirectory, `${socketName}.lock`), { force: true });
    const server = await launchServer(place, binaries.postgres, settings, stopping.signal, note);
    const lock = await takeOwnerLock(connection).catch(async (cause: Error) => {
      // Later, returning clients may have taken every connection. That is no reason to take the server from them.
      if (hasRun) return undefined;
      await stopProgram(server);
      throw new EmbeddedError(`The database in ${place.base} does not let us in: ${cause.message}.`, { cause });
    });
    hasRun = true;
    latest = server;
    keepOwnerLock(connection, lock, server, stopping.signal);
    server.child.unref();
    note("PostgreSQL started", {
      pid: server.child.pid,
      user: place.user?.name,
      dataDirectory: place.data,
      socketDirectory,
      tookMs: Math.round(performance.now() - startedAt),
    });
    return server;
  };

  const first = await launchPatiently(launch, note);
  const logBound = setInterval(() => boundLog(place.log).catch(() => undefined), 3_600_000).unref();
  const supervised = supervise(first, launch, stopping.signal, note);
  const stop = async () => {
    stopping.abort();
    clearInterval(logBound);
    await supervised;
    // One in /tmp is made anew at each start; it is ours alone and empty now.
    if (dirname(socketDirectory) !== place.base) await rmdir(socketDirectory).catch(() => undefined);
  };
  let stopped: Promise<void> | undefined;
  return {
    connection,
    url,
    dataDirectory: place.data,
    socketDirectory,
    leash: () => (latest?.leash.destroyed ? undefined : latest?.leash),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** Ends when we stop. Until then a dead server is started again, at once at first and then ever more patiently. */
async function supervise(first: Program, launch: () => Promise<Program>, stopping: AbortSignal, note: Note) {
  let server: Program | undefined = first;
  let waitMs = 0;
  while (!stopping.aborted) {
    const startedAt = performance.now();
    if (server) {
      const exit = await server.exited;
      if (stopping.aborted) return;
      note("PostgreSQL died and is started again", { exit });
    }
    waitMs = performance.now() - startedAt > healthyAfterMs ? 0 : Math.min(waitMs * 2 + 50, longestBackoffMs);
    await sleep(waitMs, undefined, { signal: stopping, ref: false }).catch(() => undefined);
    if (stopping.aborted) return;
    server = await launch().catch((error: Error) => {
      if (!stopping.aborted) note("PostgreSQL could not be started again yet", { error: error.message });
      return undefined;
    });
  }
  await server?.exited;
}

/** The first launch. What hinders it may be about to pass: another server that just begins or ends. */
async function launchPatiently(launch: () => Promise<Program>, note: Note): Promise<Program> {
  const deadline = performance.now() + patienceMs;
  for (let tries = 1; ; tries += 1) {
    try {
      return await launch();
    } catch (error) {
      const isPassing = error instanceof EmbeddedError && /pre-existing shared memory|is empty/.test(error.message);
      if (!isPassing || performance.now() > deadline) throw error;
      if (tries === 1) note("waiting for the rest of another PostgreSQL to end", { error: error.message });
      await sleep(50);
    }
  }
}

// The owner lock

/** Resolves with a promise of its loss. The lock goes with the connection, so the kernel gives it back for us. */
async function takeOwnerLock(connection: Connection): Promise<{ lost: Promise<void> }> {
  const { client, socket } = await connect(connection, `carillon owner ${process.pid}`);
  const lost = new Promise<void>((resolve) => client.once("end", resolve));
  try {
    const { rows } = await client.query(`select pg_try_advisory_lock(${ownerLock}) as taken,
      exists (select from pg_database where datname = 'carillon') as exists`);
    if (!rows[0].taken) throw new EmbeddedError("Another connection holds the owner lock of the database.");
    if (!rows[0].exists) await client.query("create database carillon");
  } catch (error) {
    socket.destroy();
    throw error;
  }
  socket.unref();
  return { lost };
}

/** The crash of any backend, or an administrator, can end the connection without ending the server. */
async function keepOwnerLock(
  connection: Connection,
  lock: { lost: Promise<void> } | undefined,
  { child }: Program,
  stop: AbortSignal,
): Promise<void> {
  for (let held = lock; ; ) {
    await held?.lost;
    await sleep(held ? 50 : 1_000, undefined, { ref: false });
    if (stop.aborted || child.exitCode !== null || child.signalCode !== null) return;
    held = await takeOwnerLock(connection).catch(() => undefined);
  }
}

/** A server in another container that shares our directory is no process we can see, but its socket answers. */
async function refuseUnseenServer(place: Place, connection: Connection): Promise<void> {
  try {
    const { client, socket } = await connect(connection, "carillon");
    const { rows } = await client.query(`select application_name from pg_stat_activity
      where pid in (select pid from pg_locks where locktype = 'advisory'
        and (classid::bigint << 32) + objid::bigint = ${ownerLock})`);
    socket.destroy();
    throw inUse(place, Number(/\d+/.exec(rows[0]?.application_name)?.[0]));
  } catch (error) {
    if (isNobodyThere(error)) return;
    throw error instanceof EmbeddedError ? error : inUse(place, undefined);
  }
}

async function connect(
  connection: Connection,
  applicationName: string,
): Promise<{ client: pg.Client; socket: Socket }> {
  // Our own socket, because pg offers no public way to let the process exit while it is open.
  const socket = new Socket();
  const client = new pg.Client({
    ...connection,
    database: "postgres",
    application_name: applicationName,
    // A machine with other things to do may take long to start a process for us.
    connectionTimeoutMillis: 30_000,
    stream: () => socket,
  });
  // The end of the connection follows and is what callers wait for.
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return { client, socket };
}
