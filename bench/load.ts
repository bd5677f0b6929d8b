// The load on an HTTP server, from a process of its own: see load-generator.ts.

import { fileURLToPath } from "node:url";
import type { LoadAnswer, LoadOptions, LoadReport } from "./load-generator.ts";
import { startProgram } from "./program.ts";

export type Load = { pid: number; run(seconds: number): Promise<LoadReport>; stop(): Promise<void> };

/** A run fails if a single answer was not 202. */
export async function startLoad(options: LoadOptions): Promise<Load> {
  const program = fileURLToPath(new URL("load-generator.ts", import.meta.url));
  const { child, pid, stop } = await startProgram(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return {
    pid,
    run: (seconds) =>
      new Promise((resolve, reject) => {
        const onExit = () => reject(new Error("the load generator ended"));
        child.once("exit", onExit);
        child.once("message", (answer: LoadAnswer) => {
          child.off("exit", onExit);
          if ("error" in answer) reject(new Error(answer.error));
          else resolve(answer);
        });
        child.send(seconds);
      }),
    stop,
  };
}
