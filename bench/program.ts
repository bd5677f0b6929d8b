// Programs that the benchmark starts, and ends again whatever happens.
//
// Each leads a process group of its own: Ctrl-C in a terminal then reaches us alone, and we end the
// programs in order. State: what has been started and not yet ended, so that an interrupted run can
// end all of it.

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Program = { pid: number; child: ChildProcess; stop(): Promise<void> };

export type ProgramOptions = {
  stdio: StdioOptions;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  user?: { uid: number; gid: number };
  /** What ends it in good order. */
  signal?: NodeJS.Signals;
};

const PATIENCE_MS = 20_000;
const cleanups = new Set<() => Promise<void>>();

/** Last in, first out. */
export async function cleanUp(): Promise<void> {
  for (const undo of [...cleanups].reverse()) await undo();
}

export function onCleanUp(undo: () => Promise<void>): () => Promise<void> {
  const once = async () => {
    if (cleanups.delete(once)) await undo();
  };
  cleanups.add(once);
  return once;
}

export async function startProgram(command: string, args: string[], options: ProgramOptions): Promise<Program> {
  const { user, signal = "SIGTERM", ...rest } = options;
  const child = spawn(command, args, { ...rest, ...user, detached: true });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
  const stop = onCleanUp(async () => {
    const impatient = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await exited;
    }
    clearTimeout(impatient);
  });
  return { pid: child.pid as number, child, stop };
}

/** Resolves when `isReady` does; fails at once when the program ends before. */
export async function whenReady<Value>(program: Program, name: string, isReady: Promise<Value>): Promise<Value> {
  const { child } = program;
  const died = new Promise<never>((_, reject) =>
    child.once("exit", (code, signal) => reject(new Error(`${name} ended before it was ready (${code ?? signal})`))),
  );
  const late = new Promise<never>((_, reject) =>
    setTimeout(() => reject(new Error(`${name} was not ready after ${PATIENCE_MS} ms`)), PATIENCE_MS).unref(),
  );
  return Promise.race([isReady, died, late]);
}

export async function temporaryDirectory(name: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), `carillon-bench-${name}-`));
  onCleanUp(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
