// A real server as a child of this process: on loopback, with ports and a directory of its own.
//
// It never outlives us: whoever stops it removes its data too, a process that ends without that kills it, and where this
// process is killed itself the kernel kills the server (setpriv --pdeathsig).

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../until.ts";

/** What is not installed as a package is kept here, for all work trees. */
export const CACHE = process.env.CARILLON_TEST_CACHE ?? join(homedir(), ".cache", "carillon-test");

/** Long, for machines with every core busy. */
const STARTS_WITHIN_MS = 180_000;
const STOPS_WITHIN_MS = 60_000;

const NOBODY = 65_534;
const SETPRIV = "/usr/bin/setpriv";
const isRoot = process.getuid?.() === 0;

export type Command = {
  program: string;
  args: string[];
  env?: { [name: string]: string };
  /** Where we are root: as a user that may do nothing. Its directory is its own. */
  asNobody?: boolean;
};

export type Server = {
  /** Of the process that runs now, or ran last. */
  pid(): number;
  /** kill -9. */
  kill(): Promise<void>;
  /** On the same ports and data. A server that still runs is asked to end first. */
  restart(): Promise<void>;
  /** For good: its data go too. */
  stop(): Promise<void>;
};

const atExit = new Set<() => void>();
process.once("exit", () => {
  for (const end of atExit) end();
});
// A runner ends a file that takes too long by SIGTERM, which by default skips the listeners above.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => process.exit(1));

export async function serverHome(name: string, isNobodys = false): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), `carillon-test-${name}-`));
  await chmod(home, 0o755);
  if (isNobodys && isRoot) await chown(home, NOBODY, NOBODY);
  return home;
}

/** Resolves when it is ready, which it may have said since it began; what it says goes to `log` in its home. */
export async function serve(
  home: string,
  command: Command,
  isReady: (said: () => string) => Promise<boolean> | boolean,
): Promise<Server> {
  const log = join(home, "log");
  let before = 0;
  const said = () => readFileSync(log).subarray(before).toString();
  let child = begin(command, log);
  const removeAtExit = () => {
    child.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  };
  atExit.add(removeAtExit);

  const ready = async () => {
    await until(async () => {
      if (hasEnded(child))
        throw new Error(`${command.program} has ended:\n${said().split("\n").slice(-20).join("\n")}`);
      return (await isReady(said)) || undefined;
    }, STARTS_WITHIN_MS);
  };
  const stop = async () => {
    await end(child, "SIGKILL");
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
    atExit.delete(removeAtExit);
  };
  await ready().catch(async (error) => {
    await stop();
    throw error;
  });
  return {
    pid: () => child.pid ?? 0,
    kill: () => end(child, "SIGKILL"),
    async restart() {
      await end(child, "SIGTERM");
      before = statSync(log).size;
      child = begin(command, log);
      await ready();
    },
    stop,
  };
}

export function begin({ program, args, env = {}, asNobody = false }: Command, log: string): ChildProcess {
  const output = openSync(log, "a");
  const nobody = asNobody && isRoot ? ["--reuid", `${NOBODY}`, "--regid", `${NOBODY}`, "--clear-groups"] : [];
  const bound = existsSync(SETPRIV)
    ? [SETPRIV, "--pdeathsig", "KILL", ...nobody, program, ...args]
    : [program, ...args];
  const [first = "", ...rest] = bound;
  const child = spawn(first, rest, { env: { ...process.env, ...env }, stdio: ["ignore", output, output] });
  child.once("error", () => undefined);
  // Tests that are over need not wait for it.
  child.unref();
  closeSync(output);
  return child;
}

export async function end(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (hasEnded(child)) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.ref();
  child.kill(signal);
  const isOver = new AbortController();
  const tooLong = sleep(STOPS_WITHIN_MS, undefined, { signal: isOver.signal }).then(
    () => child.kill("SIGKILL"),
    () => undefined,
  );
  await ended;
  isOver.abort();
  await tooLong;
}

const hasEnded = (child: ChildProcess) =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

let portsGiven = 0;

/**
 * Below those that the kernel gives to outgoing connections: a client that tries to reach a server that is down would
 * sooner or later come from the server's own port, and be connected to itself. Each process begins elsewhere.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + ((process.pid * 10 + portsGiven++) % 12_000);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
