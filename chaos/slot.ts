// The processes under test: real ones, each behind a proxy of its own, killed, frozen and started again.
//
// A slot is a place in the fleet that one process after another fills. A process never outlives the harness: a watcher
// beside it reads a pipe from us and kills it when that closes without a word, even if it is frozen.
//
// State: for each slot its process, and whether it is meant to run.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "./history.ts";
import { type DatabaseProxy, openProxy } from "./proxy.ts";

const CARILLON = join(import.meta.dirname, "..", "src", "cli", "carillon.ts");
const LEASHED = '( ( read -r word <&3 || kill -KILL $$ ) & ) ; exec "$@" 3<&-';
const AGAIN_MS = 300;

export type Variables = { [name: string]: string };

export type SlotOptions = {
  name: string;
  directory: string;
  /** The server's Unix socket. */
  target: string;
  databaseUrl: (port: number) => string;
  env: (incarnation: number) => Variables;
  nodeOptions: string[];
  /** What it must have said before it counts as running. */
  mustSay?: string;
  onFault: (fault: Fault) => void;
};

export type Slot = {
  name: string;
  proxy: DatabaseProxy;
  /** Undefined while it is down or starting. */
  pid(): number | undefined;
  /** Where it listens, once it does. */
  url(): string | undefined;
  isPaused(): boolean;
  start(): void;
  /** Resolves when it runs. Rejects after `ms`. */
  up(ms: number): Promise<void>;
  kill(): number | undefined;
  pause(): number | undefined;
  proceed(): void;
  /** A polite stop; false if it had to be killed after `ms` or ended with an error. */
  stop(ms: number): Promise<boolean>;
  /** Every log file it wrote, with the pid that did. */
  logs(): { pid: number; path: string }[];
};

/** How the processes of slots reach a test server: each by a proxy to its Unix socket. */
export function behindProxies(url: string): Pick<SlotOptions, "target" | "databaseUrl"> {
  const [, password = "", directory = ""] = /:([^:@]+)@.*host=([^&]+)/.exec(url) ?? [];
  return {
    target: join(decodeURIComponent(directory), ".s.PGSQL.5432"),
    databaseUrl: (port) => `postgresql://carillon:${password}@127.0.0.1:${port}/carillon`,
  };
}

type Running = { child: ChildProcess; url: string | undefined; isCondemned: boolean };

const living = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

export async function openSlot(options: SlotOptions): Promise<Slot> {
  const { name, directory, target, databaseUrl, env, nodeOptions, mustSay = "", onFault } = options;
  const proxy = await openProxy(target);
  const logs: { pid: number; path: string }[] = [];
  let incarnation = 0;
  let isWanted = false;
  let isPaused = false;
  let current: Running | undefined;

  function start(): void {
    isWanted = true;
    if (current) return;
    const path = join(directory, `${name}-${++incarnation}.log`);
    const log = openSync(path, "a");
    const variables = {
      PATH: process.env.PATH ?? "",
      PORT: "0",
      CARILLON_HOME: join(directory, "home"),
      DATABASE_URL: databaseUrl(proxy.port),
      ...env(incarnation),
    };
    const child = spawn("/bin/sh", ["-c", LEASHED, "sh", process.execPath, ...nodeOptions, CARILLON, "start"], {
      cwd: directory,
      env: variables,
      stdio: ["ignore", "pipe", log, "pipe"],
    });
    closeSync(log);
    living.add(child);
    const mine: Running = { child, url: undefined, isCondemned: false };
    current = mine;
    const leash = child.stdio[3];
    if (leash instanceof Socket) leash.on("error", () => undefined);
    if (child.pid !== undefined) logs.push({ pid: child.pid, path });
    let said = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes(mustSay)) mine.url ??= /^carillon listening on (http:\S+)$/m.exec(said)?.[1];
    });
    child.once("exit", (code, signal) => {
      living.delete(child);
      // A word before the end, or the watcher would signal a number that may belong to another process by now.
      if (leash instanceof Socket) leash.end("done\n");
      if (current === mine) current = undefined;
      if (mine.isCondemned) return;
      const kind = mine.url === undefined ? "start failed" : "died by itself";
      onFault({ kind, at: Date.now(), slot: name, pid: child.pid ?? 0, statement: `${signal ?? `code ${code}`}` });
      if (isWanted) setTimeout(() => isWanted && start(), AGAIN_MS);
    });
  }

  const pid = () => (current?.url === undefined ? undefined : current.child.pid);
  const proceed = () => {
    isPaused = false;
    current?.child.kill("SIGCONT");
  };
  return {
    name,
    proxy,
    pid,
    url: () => current?.url,
    isPaused: () => isPaused,
    start,
    async up(ms) {
      for (const deadline = performance.now() + ms; pid() === undefined; ) {
        if (performance.now() > deadline) throw new Error(`${name} did not start within ${ms} ms`);
        await sleep(20);
      }
    },
    kill() {
      isWanted = false;
      isPaused = false;
      if (!current) return undefined;
      current.isCondemned = true;
      current.child.kill("SIGKILL");
      const killed = current.child.pid;
      current = undefined;
      return killed;
    },
    pause() {
      const paused = pid();
      if (paused === undefined) return undefined;
      isPaused = true;
      current?.child.kill("SIGSTOP");
      return paused;
    },
    proceed,
    async stop(ms) {
      isWanted = false;
      proceed();
      const stopping = current;
      if (!stopping) return true;
      stopping.isCondemned = true;
      const { child, url } = stopping;
      const timer = setTimeout(() => child.kill("SIGKILL"), ms);
      const code = await new Promise((resolve) => {
        child.once("exit", resolve);
        child.kill("SIGTERM");
      });
      clearTimeout(timer);
      // One that has not got to its signal handlers yet just ends.
      return code === 0 || url === undefined;
    },
    logs: () => logs,
  };
}
