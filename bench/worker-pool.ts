// Worker processes as the benchmark sees them: how many jobs they have begun, and when the last.

import { fileURLToPath } from "node:url";
import { type Program, startProgram, whenReady } from "./program.ts";
import type { World } from "./scenario.ts";
import type { WorkerSettings } from "./workers/worker.ts";

type Report = { isReady?: true; isRunning?: true; count?: number; lastAt?: number; latencies?: number[] };

export type WorkerPool = {
  processes: Record<string, number>;
  /** Resolves when all of them run. */
  go(): Promise<void>;
  count(): number;
  /** On the machine's clock. */
  lastAt(): number;
  /** Stops them; resolves with the latencies they have seen. */
  stop(): Promise<number[]>;
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
      [SCRIPT, name, settings, JSON.stringify({ databaseUrl, redisUrl })],
      { stdio: ["ignore", "inherit", "inherit", "ipc"] },
    );
    const state = { count: 0, lastAt: 0, latencies: [] as number[] };
    const heard = (is: (report: Report) => unknown) =>
      new Promise<void>((resolve) => {
        program.child.on("message", (report: Report) => {
          if (is(report)) resolve();
        });
      });
    program.child.on("message", ({ count, lastAt, latencies }: Report) => {
      if (count !== undefined) Object.assign(state, { count, lastAt });
      if (latencies) state.latencies = latencies;
    });
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

  return {
    processes: Object.fromEntries(workers.map(({ program }, n) => [`worker ${n + 1}`, program.pid])),
    async go() {
      for (const { program } of workers) tell(program, "go");
      await Promise.all(workers.map(({ isRunning }) => isRunning));
    },
    count: () => workers.reduce((sum, { state }) => sum + state.count, 0),
    lastAt: () => Math.max(...workers.map(({ state }) => state.lastAt)),
    async stop() {
      for (const { program } of workers) tell(program, "stop");
      await Promise.all(workers.map(({ isDone }) => isDone));
      await Promise.all(workers.map(({ program }) => program.stop()));
      return workers.flatMap(({ state }) => state.latencies);
    },
  };
}
