// The command line in a pseudo-terminal, as script(1) of util-linux makes one: it draws bars and screens, and hears keys.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { cleanEnvironment, type Exit } from "./process.ts";

const carillon = join(import.meta.dirname, "..", "..", "src", "cli", "carillon.ts");

export type Terminal = {
  exited: Promise<Exit>;
  /** What is on it so far, with the sequences that steer it. */
  shown(): string;
  /** Resolves when that is shown. */
  shows(pattern: RegExp): Promise<void>;
  type(keys: string): void;
  child: ChildProcess;
};

/** `typed` is typed once something is asked. */
export function terminal(
  t: Pick<TestContext, "after">,
  args: string[],
  { url, key }: { url: string; key: string },
  typed?: string,
  more: { [name: string]: string } = {},
): Terminal {
  const command = [process.execPath, carillon, ...args].map((word) => `'${word}'`).join(" ");
  const env = cleanEnvironment({ CARILLON_URL: url, CARILLON_API_KEY: key, TERM: "xterm", ...more });
  const sized = `stty cols 100 rows 30; ${command}`;
  const child = spawn("script", ["-qefc", sized, "/dev/null"], { env, stdio: ["pipe", "pipe", "inherit"] });
  // One that a test gave up must not keep its file from ending.
  t.after(() => void child.kill("SIGKILL"));
  let text = "";
  const waiting = new Set<() => void>();
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    for (const look of waiting) look();
  });
  child.stdin.on("error", () => {});
  const shows = (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!pattern.test(text)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      child.once("close", () => reject(new Error(`it ended without showing ${pattern}:\n${text}`)));
      look();
    });
  if (typed !== undefined)
    shows(/yes: /).then(
      () => child.stdin.write(typed),
      () => {},
    );
  const exited = once(child, "close").then(([code, signal]) => ({ code, signal, stdout: text, stderr: "" }));
  return { exited, shown: () => text, shows, type: (keys) => void child.stdin.write(keys), child };
}
