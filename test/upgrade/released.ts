// Carillon 0.2.0 as it was released, to run beside today's: the packed package without maps, declarations, docs and comments.
//
// It takes its dependencies from our node_modules. When one of them can no longer serve it, that version has to come along.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");

let program: string | undefined;

/** The path of its command line. Unpacked once, for as long as this process lives. */
export function released(): string {
  if (program !== undefined) return program;
  const folder = mkdtempSync(join(tmpdir(), "carillon-0.2.0-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  execFileSync("tar", ["-xzf", join(root, "test/fixtures/carillon-0.2.0.tgz"), "-C", folder]);
  symlinkSync(join(root, "node_modules"), join(folder, "package", "node_modules"));
  program = join(folder, "package", "dist", "cli", "carillon.js");
  return program;
}
