// The real service as a process of its own, to be started, killed and read as an operator would.
//
// A sandbox is a directory with the processes that run in it. After the test whatever still runs there is ended
// and the directory removed; if this process ends early, its children end with it.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { temporaryHome } from "./postgres.ts";
import { ADMIN_KEY, asking, type Service } from "./service.ts";

const carillon = join(import.meta.dirname, "..", "..", "src", "cli", "carillon.ts");

const SERVER_STOPS_MS = 10_000;

export type Variables = { [name: string]: string | undefined };
export type Exit = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type Process = {
  pid: number;
  /** What it has written so far. */
  stdout(): string;
  stderr(): string;
  /** The first match in what it writes, on either stream. Rejects if it ends without one. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when it is gone and all that it wrote has been read. */
  exited: Promise<Exit>;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Exit>;
};

export type ServiceProcess = Process & { url: string; ask: Service["ask"] };

/** Saves 0.2 of 0.5 s for every start after one that ended by itself: a process writes it when it exits. All files of a run share one. */
const ownCache = process.env.NODE_COMPILE_CACHE ? undefined : mkdtempSync(join(tmpdir(), "carillon-test-compiled-"));
const compileCache = process.env.NODE_COMPILE_CACHE ?? ownCache;
const live = new Set<number>();
process.once("exit", () => {
  for (const pid of live) signalGroup(pid, "SIGKILL");
  if (ownCache) rmSync(ownCache, { recursive: true, force: true, maxRetries: 5 });
});
// The runner ends a file that takes too long by SIGTERM, which by default skips the listeners above.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => process.exit(1));

/** Our own environment without what would configure a Carillon, or betray that npm and a test started it. */
export function cleanEnvironment(more: Variables = {}): Variables {
  const foreign =
    /^(CARILLON_|PG|NODE_TEST|(TEST_)?DATABASE_URL$|PORT$|HOST$|INIT_CWD$|npm_(?!config_(registry|cache)$))/;
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name))), ...more };
}

/** In a process group of its own, so that a wrapper such as npx cannot leave the program behind. */
export function launch(command: string, args: string[], options: { cwd: string; env: Variables }): Process {
  const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  child.once("error", () => undefined);
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} could not be started`);
  live.add(pid);
  let stdout = "";
  let stderr = "";
  const listeners = new Set<() => void>();
  const tellAll = () => {
    for (const listener of listeners) listener();
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    tellAll();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    tellAll();
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code, signal) => {
      live.delete(pid);
      resolve({ code, signal, stdout, stderr });
      tellAll();
    });
  });

  return {
    pid,
    stdout: () => stdout,
    stderr: () => stderr,
    exited,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(stdout) ?? pattern.exec(stderr);
          if (found) resolve(found);
          else if (!live.has(pid)) reject(new Error(`it ended without saying ${pattern}:\n${stdout}\n${stderr}`));
          else return;
          listeners.delete(look);
        };
        listeners.add(look);
        look();
      }),
    end(signal) {
      if (live.has(pid)) signalGroup(pid, signal);
      return exited;
    },
  };
}

export type Sandbox = {
  directory: string;
  /** CARILLON_HOME of whatever runs here. Not made beforehand. */
  home: string;
  /** The command line, not waited for. */
  begin(args: string[], env?: Variables): Process;
  /** The command line, to its end. */
  run(args: string[], env?: Variables): Promise<Exit>;
  /** `carillon start`, not waited for. */
  launch(env?: Variables): Process;
  /** `carillon start`, when it is ready. */
  start(env?: Variables): Promise<ServiceProcess>;
  /** The embedded server, of which PostgreSQL's own lock file tells. */
  server(): { pid: number; socketDirectory: string };
  /** Connected to the embedded database. */
  connect(): Promise<pg.Client>;
};

/** `program` is the command line of another version. */
export async function sandboxFor(t: TestContext, program = carillon): Promise<Sandbox> {
  const directory = await temporaryHome();
  const home = join(directory, "home");
  const processes: Process[] = [];
  const clients: pg.Client[] = [];

  const begin = (args: string[], env: Variables = {}): Process => {
    const settings = {
      PORT: "0",
      CARILLON_HOME: home,
      CARILLON_API_KEY: ADMIN_KEY,
      NODE_COMPILE_CACHE: compileCache,
      ...env,
    };
    const begun = launch(process.execPath, [program, ...args], { cwd: directory, env: cleanEnvironment(settings) });
    processes.push(begun);
    return begun;
  };
  const server = () => {
    const lines = readFileSync(join(home, "postgres", "data", "postmaster.pid"), "utf8").split("\n");
    return { pid: Number.parseInt(lines[0] ?? "", 10), socketDirectory: lines[4] ?? "" };
  };
  /** A server without its Carillon stops by itself; its lock file goes with it, unless it was killed. */
  const serverStopped = async () => {
    try {
      const tooLong = sleep(SERVER_STOPS_MS, undefined, { ref: false });
      await Promise.race([gone(server().pid), tooLong]);
    } catch {
      // There is no lock file.
    }
  };

  t.after(async () => {
    for (const client of clients) await client.end().catch(() => undefined);
    for (const one of processes) await one.end("SIGKILL");
    await serverStopped();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });

  return {
    directory,
    home,
    begin,
    run: (args, env) => begin(args, env).exited,
    launch: (env) => begin(["start"], env),
    async start(env) {
      const begun = begin(["start"], env);
      const [, url = ""] = await begun.says(/^carillon listening on (http:\S+)$/m);
      return { ...begun, url, ask: asking(url) };
    },
    server,
    async connect() {
      const password = (await readFile(join(home, "postgres/password"), "utf8")).trim();
      const names = { host: server().socketDirectory, user: "carillon", database: "carillon" };
      const client = new pg.Client({ ...names, password });
      clients.push(client);
      client.on("error", () => undefined);
      await client.connect();
      return client;
    },
  };
}

/** Resolves when there is no such process. It is not our child, so no signal tells; hence the polling. */
export async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(10);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // One that has ended stays a zombie until its parent has asked for its end.
    return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // Gone already.
  }
}
