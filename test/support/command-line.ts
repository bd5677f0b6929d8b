// The command line in the test's own process, asked of a service: for what need not start a process each time.

import { Readable } from "node:stream";
import { runCommand } from "#cli/run-command.ts";
import { createWorld } from "#cli/world.ts";

export type Ran = { code: number; stdout: string; stderr: string };
export type LineOptions = { input?: string; onText?: (text: string) => void };

/** Rejects with what the command throws, and with what `onText` does. */
export const commandLine =
  ({ url, key }: { url: string; key: string }, { input = "", onText = () => {} }: LineOptions = {}) =>
  async (...args: string[]): Promise<Ran> => {
    const ran = { stdout: "", stderr: "" };
    const writing = (to: "stdout" | "stderr") =>
      ({
        write(text: string) {
          ran[to] += text;
          onText(text);
        },
      }) as NodeJS.WriteStream;
    const [output, errors] = [writing("stdout"), writing("stderr")];
    const env = { CARILLON_URL: url, CARILLON_API_KEY: key };
    const worldOf = (isJson: boolean) =>
      createWorld({
        env,
        cwd: import.meta.dirname,
        isJson,
        output,
        errors,
        input: Readable.from([input]) as NodeJS.ReadStream,
      });
    return { code: await runCommand(args, worldOf), ...ran };
  };

/** What it printed, or complained of, without the last line's end. */
export const toldBy =
  (run: (...args: string[]) => Promise<Ran>) =>
  async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await run(...args);
    return (stdout || stderr).replace(/\n$/, "");
  };
