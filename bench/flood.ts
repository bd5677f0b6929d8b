// A flood of jobs that is kept at a depth: what was begun is made up for while something else is measured beside it.

import { fileURLToPath } from "node:url";
import type { MixedJob } from "./payload.ts";
import { startProgram, whenReady } from "./program.ts";
import type { WorkerUrls } from "./workers/worker.ts";

export type FloodOptions = { name: string; urls: WorkerUrls; job: Pick<MixedJob, "takesMs" | "tenant" | "dueMs"> };

export type Flood = {
  pid: number;
  /** Resolves once so many more are in the store. */
  add(jobs: number): Promise<void>;
  /** From now on: as many as `begun` says have gone are added, a thousand at a time. Fails where that failed. */
  keep(begun: () => number): { stop(): Promise<void> };
  stop(): Promise<void>;
};

const STEP = 1_000;
const LOOK_MS = 20;
const SCRIPT = fileURLToPath(new URL("flood-process.ts", import.meta.url));
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function startFlood(options: FloodOptions): Promise<Flood> {
  const program = await startProgram(process.execPath, [SCRIPT, JSON.stringify(options)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const { child, pid, stop } = program;
  const next = () =>
    new Promise<void>((resolve, reject) => {
      const onExit = () => reject(new Error(`the flood of ${options.name} ended`));
      child.once("exit", onExit);
      child.once("message", () => {
        child.off("exit", onExit);
        resolve();
      });
    });
  await whenReady(program, "the flood", next());

  const add = (jobs: number): Promise<void> => {
    const added = next();
    child.send({ add: jobs });
    return added;
  };
  return {
    pid,
    add,
    keep(begun) {
      const from = begun();
      let added = 0;
      let isOver = false;
      const keeping = (async () => {
        while (!isOver) {
          const missing = begun() - from - added;
          const jobs = Math.floor(missing / STEP) * STEP;
          if (jobs > 0) await add(jobs);
          else await pause(LOOK_MS);
          added += jobs;
        }
      })();
      return {
        async stop() {
          isOver = true;
          await keeping;
        },
      };
    },
    stop,
  };
}
