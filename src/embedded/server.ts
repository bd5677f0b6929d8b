// One run of a PostgreSQL program, from spawn to exit, that cannot outlive us unnoticed.
//
// The leash: /bin/sh starts a watcher and then becomes the program by exec, so the program is our own child and
// its exit reaches us as a signal. The watcher reads a pipe from us; when that closes without a word, we are gone
// (even by kill -9) and it asks the program to stop. It is a grandchild, because the postmaster would take the
// death of an unknown child for a crash. The program has a session of its own: Ctrl-C in a terminal must not stop
// the database before we have drained.
//
// Whose server is it? The command line names the process that started it (carillon.parent). If that is still
// its parent, the server has an owner. If not, it is an orphan, to be stopped if its watcher is not doing so already.
// Unlike a pid in a file, parenthood cannot be stale, and unlike a lock inside the database it also holds while
// the server is starting or recovering. A server that was not started by us is never touched; PostgreSQL itself
// then refuses to start a second one.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync, rmSync, statSync } from "node:fs";
import { copyFile, open, readFile, truncate } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Note, Place } from "./place.ts";
import { EmbeddedError, programEnvironment, type ServerUser } from "./postgres-binaries.ts";

const leashed = '( ( read -r word <&3 || kill -INT $$ ) & ) ; exec "$@" 3<&-';
const largestLogBytes = 10 * 1024 * 1024;
/** Recovery after a crash may take minutes; that it happens is worth a line, not a failure. */
const slowStartMs = 10_000;
/** A fast shutdown writes a checkpoint, an immediate one nothing; when these times are over, it hangs. */
const fastShutdownMs = 30_000;
const immediateShutdownMs = 10_000;

/** The program stops when the last copy of its leash is closed: a process that is given one keeps it running past our own end. */
export type Program = { child: ChildProcess; leash: Socket; exited: Promise<string> };

export function spawnLeashed(
  command: string,
  args: string[],
  options: { user: ServerUser | undefined; output: number; env?: Record<string, string> },
): Program {
  const { user, output, env } = options;
  const child = spawn("/bin/sh", ["-c", leashed, "sh", command, ...args], {
    ...(user && { uid: user.uid, gid: user.gid }),
    cwd: "/",
    env: { ...programEnvironment, ...env },
    detached: true,
    stdio: ["ignore", output, output, "pipe"],
  });
  const leash = child.stdio[3];
  if (!(leash instanceof Socket)) throw new TypeError("a pipe of a child is a socket");
  leash.unref();
  // The watcher may be killed; then writing to it fails, and there is nothing to do about that.
  leash.on("error", () => undefined);
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => {
      // A word before the end, or the watcher would signal a number that may belong to another process by now.
      leash.end("done\n");
      resolve(signal ? `killed by ${signal}` : `exit code ${code}`);
    });
  });
  return { child, leash, exited };
}

/** A fast shutdown; harder ways, which lose nothing but the next start's time, only if that hangs. */
export function stopProgram({ child, exited }: Pick<Program, "child" | "exited">): Promise<string> {
  child.ref();
  child.kill("SIGINT");
  setTimeout(() => child.kill("SIGQUIT"), fastShutdownMs).unref();
  setTimeout(() => child.kill("SIGKILL"), fastShutdownMs + immediateShutdownMs).unref();
  return exited;
}

/** Resolves when the server accepts connections. On failure or abort nothing is left running. */
export async function launchServer(
  place: Place,
  postgres: string,
  settings: Record<string, string>,
  stopping: AbortSignal,
  note: Note,
): Promise<Program> {
  await boundLog(place.log);
  const log = await open(place.log, "a", 0o600);
  const { size: logStart } = await log.stat();
  // The parent comes first, in the form that findServer looks for.
  const args = ["-D", place.data, "-c", `carillon.parent=${process.pid}`];
  for (const [name, value] of Object.entries(settings)) args.push("-c", `${name}=${value}`);
  const stalePid = findStalePid(place.data);
  const server = spawnLeashed(postgres, args, {
    user: place.user,
    output: log.fd,
    // If the number was given to another process since, PostgreSQL would take that for a running server. This
    // variable makes it ignore the number and still check that nobody uses the memory of the old server; deleting
    // the file would prevent that check.
    ...(stalePid !== undefined && { env: { PG_GRANDPARENT_PID: String(stalePid) } }),
  });
  await log.close();

  const stop = () => void stopProgram(server);
  stopping.addEventListener("abort", stop);
  if (stopping.aborted) stop();
  server.exited.then(() => stopping.removeEventListener("abort", stop));

  const startedAt = performance.now();
  let isSlow = false;
  for (;;) {
    const file = readPidFile(place.data);
    if (file?.pid === server.child.pid && file?.status === "ready") return server;
    const exit = await Promise.race([server.exited, sleep(10, undefined)]);
    if (exit !== undefined) throw await startFailure(place, exit, logStart);
    if (!isSlow && performance.now() - startedAt > slowStartMs) {
      isSlow = true;
      note("PostgreSQL is still starting, perhaps recovering from a crash", { log: place.log });
    }
  }
}

async function startFailure(place: Place, exit: string, logStart: number): Promise<EmbeddedError> {
  // Of two starts at once, PostgreSQL lets the first to write its lock file live.
  const owner = findServer(place.data)?.owner;
  if (owner !== undefined) return inUse(place, owner);
  return new EmbeddedError(
    `PostgreSQL did not start in ${place.data} (${exit}). The end of ${place.log}:\n${await tail(place.log, logStart)}`,
  );
}

/** Afterwards no server of ours runs in the directory, unless somebody else starts one just now. */
export async function makeWay(place: Place, note: Note): Promise<void> {
  const found = findServer(place.data);
  if (found?.owner !== undefined) throw inUse(place, found.owner);
  if (found) {
    note("stopping a PostgreSQL that outlived its Carillon", { pid: found.pid });
    await stopOrphan(place, found.pid);
  }
  // A crash of the machine can leave the file empty, which PostgreSQL takes for a server that just starts. One
  // that does writes its number at once.
  const file = join(place.data, "postmaster.pid");
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats && stats.size === 0 && Date.now() - stats.mtimeMs > 2_000) rmSync(file, { force: true });
}

export function inUse(place: Place, owner: number | undefined): EmbeddedError {
  return new EmbeddedError(
    `The database in ${place.base} is in use by another Carillon${owner ? ` (process ${owner})` : ""}. Stop that one ` +
      "first, or give this one a CARILLON_HOME of its own.",
  );
}

/** The last lines, from `start` on: what happened before belongs to another run. */
export async function tail(log: string, start = 0): Promise<string> {
  const text = (await readFile(log)).subarray(start).toString();
  return text.trimEnd().split("\n").slice(-15).join("\n");
}

/** Copied and emptied rather than renamed, because a running server keeps it open (for appending). */
export async function boundLog(log: string): Promise<void> {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= largestLogBytes) return;
  await copyFile(log, `${log}.1`);
  await truncate(log);
}

async function stopOrphan(place: Place, pid: number): Promise<void> {
  for (const signal of ["SIGINT", "SIGQUIT"] as const) {
    const deadline = performance.now() + 10_000;
    if (findServer(place.data)?.pid === pid) process.kill(pid, signal);
    // It is not our child, so no signal tells us that it is gone.
    while (isServerOf(place.data, pid)) {
      if (performance.now() > deadline) break;
      await sleep(20);
    }
  }
  if (!isServerOf(place.data, pid)) return;
  throw new EmbeddedError(
    `The database in ${place.base} is still used by a PostgreSQL (process ${pid}) that an earlier Carillon left ` +
      "behind and that does not stop when asked to. Stop it by hand and start again.",
  );
}

/** The running server of this directory that we or another Carillon started; `owner` is undefined for an orphan. */
function findServer(data: string): { pid: number; owner: number | undefined } | undefined {
  const pid = readPidFile(data)?.pid;
  return pid === undefined ? undefined : isServerOf(data, pid);
}

function isServerOf(data: string, pid: number): { pid: number; owner: number | undefined } | undefined {
  const [parent, commandLine] = describeProcess(pid);
  const marker = ` -D ${data} -c carillon.parent=`;
  const at = commandLine.indexOf(marker);
  if (at < 0) return undefined;
  const starter = Number.parseInt(commandLine.slice(at + marker.length), 10);
  return { pid, owner: starter === parent ? starter : undefined };
}

/** What the lock file names, unless that could be a server of this directory, whoever started it. */
function findStalePid(data: string): number | undefined {
  const pid = readPidFile(data)?.pid;
  return pid === undefined || describeProcess(pid)[1].includes(data) ? undefined : pid;
}

/** Its parent and its command line, which is empty if there is no such process. */
function describeProcess(pid: number): [parent: number, commandLine: string] {
  try {
    if (process.platform === "linux") {
      // Not ps: small images do not have it.
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return [Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]), commandLine];
    }
    const line = execFileSync("ps", ["-ww", "-o", "ppid=,args=", "-p", String(pid)], { encoding: "utf8" }).trim();
    return [Number.parseInt(line, 10), line];
  } catch {
    return [0, ""];
  }
}

/** PostgreSQL's own lock file: its process on line 1, its state on line 8. */
function readPidFile(data: string): { pid: number; status: string } | undefined {
  try {
    const lines = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    const pid = Number.parseInt(lines[0] ?? "", 10);
    return pid > 0 ? { pid, status: lines[7]?.trim() ?? "" } : undefined;
  } catch {
    return undefined;
  }
}
