#!/usr/bin/env node
// The command line. What a command needs is loaded when it is run: the help needs next to nothing.

import { CarillonError, UnreachableError } from "#client/error.ts";
import { EXIT, Failure } from "./command.ts";
import { runCommand } from "./run-command.ts";
import { createWorld } from "./world.ts";

const { stdout: output, stderr: errors, stdin: input } = process;
// Whoever reads us may have had enough: `carillon tail | head`.
output.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT.done);
});
const worldOf = (isJson: boolean) =>
  createWorld({ env: process.env, cwd: process.cwd(), isJson, output, errors, input });

try {
  process.exitCode = await runCommand(process.argv.slice(2), worldOf);
} catch (error) {
  const { said, exitCode } = await complaint(error);
  errors.write(`carillon: ${said}\n`);
  process.exitCode = exitCode;
}

async function complaint(error: unknown): Promise<{ said: string; exitCode: number }> {
  if (error instanceof Failure) return { said: error.message, exitCode: error.exitCode };
  if (error instanceof CarillonError) {
    const { status, said, errors: faults } = error;
    const all = faults.map(({ path, message: fault }) => `\n  ${path}: ${fault}`);
    return { said: said + all.join(""), exitCode: codeOf(status) };
  }
  const away = await awayFault(error);
  if (away !== undefined) return { said: away, exitCode: EXIT.failed };
  return (await import("./complaint.ts")).complaintOf(error);
}

function codeOf(status: number): number {
  if (status === 404) return EXIT.notFound;
  return status >= 400 && status < 500 ? EXIT.refused : EXIT.failed;
}

/** Where nobody answers. */
async function awayFault(error: unknown): Promise<string | undefined> {
  if (!(error instanceof UnreachableError)) return undefined;
  const { cause: why } = error.cause instanceof Error ? error.cause : {};
  const cause = why instanceof Error && "code" in why ? ` (${why.code})` : "";
  const { origin } = new URL(await worldOf(false).url());
  return `no Carillon answers at ${origin}${cause}. Start it, or correct CARILLON_URL.`;
}
