// Worker processes as the benchmark sees them: how many jobs they have begun, and when the last.

import { fileURLToPath } from "node:url";
import { profileFlags } from "./profile.ts";
import { type Program, startProgram, whenReady } from "./program.ts";
import type { World } from "./scenario.ts";
import type { WorkerSettings } from "./workers/worker.ts";

/** Of each job that was measured, in the same order: how long it took to begin, and when it was handed over. */
type Latencies = { latencies: number[]; handedAts: number[] };
type Report = {
  isReady?: true;
  isRunning?: true;
  count?: number;
  lastAt?: number;
  measured?: number;
} & Partial<Latencies>;

export type WorkerPool = {
  processes: Record<string, number>;
  /** Resolves when all of them run. */
  go(): Promise<void>;
  count(): number;
  /** Of them, those whose latency is measured. */
  measured(): number;
  /** On the machine's clock. */
  lastAt(): number;
  /** Stops them; resolves with the latencies they have seen. */
  stop(): Promise<number[]>;
  /** Ends them as they are; resolves with the wait of each job that has begun, by the instant it was handed over. */
  leave(): Promise<Map<number, number>>;
};

const SCRIPT = fileURLToPath(new URL("worker-process.ts", import.meta.url));

export async function startWorkers(
  name: string,
  settings: WorkerSettings,
  world: World,
  processes: number,
): Promise<WorkerPool> {
  const { databaseUrl, redisUrl } = world;
  const one = async () => {
    const program = await startProgram(
      process.execPath,
      [
        ...profileFlags(world.profileDirectory, name),
        SCRIPT,
        name,
        settings,
        JSON.stringify({ databaseUrl, redisUrl }),
      ],
      { stdio: ["ignore", "inherit", "inherit", "ipc"] },
    );
    const state = { count: 0, lastAt: 0, measured: 0, latencies: [] as number[], handedAts: [] as number[] };
    const heard = (is: (report: Report) => unknown) =>
      new Promise<void>((resolve) => {
        program.child.on("message", (report: Report) => {
          if (is(report)) resolve();
        });
      });
    program.child.on("message", ({ isReady, isRunning, ...report }: Report) => Object.assign(state, report));
    const isRunning = heard((report) => report.isRunning);
    const isDone = heard((report) => report.latencies);
    await whenReady(
      program,
      name,
      heard((report) => report.isReady),
    );
    return { program, state, isRunning, isDone };
  };
  const workers = await Promise.all(Array.from({ length: processes }, one));
  const tell = ({ child }: Program, message: string) => child.send(message);
  const ended = async (message: string) => {
    for (const { program } of workers) tell(program, message);
    await Promise.all(workers.map(({ isDone }) => isDone));
    await Promise.all(workers.map(({ program }) => program.stop()));
  };

  return {
    processes: Object.fromEntries(workers.map(({ program }, n) => [`worker ${n + 1}`, program.pid])),
    async go() {
      for (const { program } of workers) tell(program, "go");
      await Promise.all(workers.map(({ program, isRunning }) => whenReady(program, name, isRunning)));
    },
    count: () => workers.reduce((sum, { state }) => sum + state.count, 0),
    lastAt: () => Math.max(...workers.map(({ state }) => state.lastAt)),
    measured: () => workers.reduce((sum, { state }) => sum + state.measured, 0),
    async stop() {
      await ended("stop");
      return workers.flatMap(({ state }) => state.latencies);
    },
    async leave() {
      await ended("leave");
      const waits = new Map<number, number>();
      for (const { state } of workers) {
        for (const [n, at] of state.handedAts.entries()) {
          // The first start counts: a second one is a repetition.
          if (!waits.has(at)) waits.set(at, state.latencies[n] ?? Number.NaN);
        }
      }
      return waits;
    },
  };
}
