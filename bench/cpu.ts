// Who used the processors during a run: our processes by name, and everybody else (Linux only).
//
// The figures of a run are worth what the machine was worth meanwhile. A process belongs to the
// nearest of its ancestors that has a name, so PostgreSQL's backends count as PostgreSQL; what
// belongs to none of ours is "others".

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Cores used, by name; always with `others`. */
export type CpuUse = Readonly<Record<string, number>>;

const TICKS_PER_SECOND = 100;
const canTell = process.platform === "linux";
/** A server that was given to us is no child of ours: its processes are known by their command. */
const COMMANDS: Readonly<Record<string, string>> = { postgres: "postgres", "redis-server": "redis" };

type Process = { parent: number; command: string; seconds: number };

/** Starts an account; calling what it returns closes it. */
export function accountCpu(names: Readonly<Record<string, number>>): () => CpuUse {
  if (!canTell) return () => ({ others: 0 });
  const nameOfPid = new Map(Object.entries({ bench: process.pid, ...names }).map(([name, pid]) => [pid, name]));
  const startedAt = performance.now();
  const before = { busy: busySeconds(), used: secondsByName(nameOfPid) };
  return () => {
    const elapsed = (performance.now() - startedAt) / 1000;
    const used = secondsByName(nameOfPid);
    const cores: Record<string, number> = {};
    let ours = 0;
    for (const [name, seconds] of used) {
      const spent = Math.max(0, seconds - (before.used.get(name) ?? 0));
      ours += spent;
      cores[name] = rounded(spent / elapsed);
    }
    return { ...cores, others: rounded(Math.max(0, (busySeconds() - before.busy - ours) / elapsed)) };
  };
}

/** Waits until the machine has been nine tenths idle for a second, at most `limitMs`. */
export async function waitForQuiet(limitMs: number): Promise<void> {
  if (!canTell) return;
  const until = performance.now() + limitMs;
  const cores = readFileSync("/proc/stat", "utf8").match(/^cpu\d/gm)?.length ?? 1;
  while (performance.now() < until) {
    const [before, startedAt] = [busySeconds(), performance.now()];
    await sleep(1000);
    if ((busySeconds() - before) / ((performance.now() - startedAt) / 1000) < cores / 10) return;
  }
}

/** Seconds of processor time so far, of these processes and all that they started. */
export function secondsOf(pids: readonly number[]): number {
  const seconds = secondsByName(new Map(pids.map((pid) => [pid, "asked"])));
  return seconds.get("asked") ?? 0;
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

function busySeconds(): number {
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  const [user = 0, nice = 0, system = 0, _idle, _wait, irq = 0, softIrq = 0, stolen = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softIrq + stolen) / TICKS_PER_SECOND;
}

function secondsByName(nameOfPid: ReadonlyMap<number, string>): Map<string, number> {
  const processes = readProcesses();
  const known = new Set(nameOfPid.values());
  const seconds = new Map<string, number>();
  for (const [pid, { command, seconds: own }] of processes) {
    const given = COMMANDS[command];
    const name = ownerOf(pid, processes, nameOfPid) ?? (given && !known.has(given) ? given : undefined);
    if (name) seconds.set(name, (seconds.get(name) ?? 0) + own);
  }
  return seconds;
}

function ownerOf(pid: number, processes: ReadonlyMap<number, Process>, nameOfPid: ReadonlyMap<number, string>) {
  for (let at: number | undefined = pid; at !== undefined; at = processes.get(at)?.parent) {
    const name = nameOfPid.get(at);
    if (name) return name;
  }
  return undefined;
}

function readProcesses(): Map<number, Process> {
  const processes = new Map<number, Process>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const end = stat.lastIndexOf(")");
      const fields = stat.slice(end + 2).split(" ");
      // Time of its own and of children that have ended, so that a backend that left is not forgotten.
      const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
      const command = stat.slice(stat.indexOf("(") + 1, end);
      processes.set(Number(pid), { parent: Number(fields[1]), command, seconds: ticks / TICKS_PER_SECOND });
    } catch {
      // It ended between the listing and the reading.
    }
  }
  return processes;
}
