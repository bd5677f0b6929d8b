// Carillon as it was released, to run beside today's: the packed packages without maps, declarations, docs and comments.
//
// It takes its dependencies from our node_modules. When one of them can no longer serve it, that version has to come along.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");

const programs = new Map<string, string>();

/** The path of a version's command line. Unpacked once, for as long as this process lives. */
export function released(version = "0.2.0"): string {
  const known = programs.get(version);
  if (known !== undefined) return known;
  const folder = mkdtempSync(join(tmpdir(), `carillon-${version}-`));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  execFileSync("tar", ["-xzf", join(root, `test/fixtures/carillon-${version}.tgz`), "-C", folder]);
  symlinkSync(join(root, "node_modules"), join(folder, "package", "node_modules"));
  const program = join(folder, "package", "dist", "cli", "carillon.js");
  programs.set(version, program);
  return program;
}
