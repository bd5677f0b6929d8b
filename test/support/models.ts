// Runs the models of models/*.pml: spin makes a program of each, which walks through all that can happen.
//
// A model is verified twice: that nothing forbidden happens and nobody is stuck; then that everything ends, if whoever can go on does so at some time.
// A mutant is a model without one of its rules. It has to break.

import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { debianProgram } from "./debian.ts";

const run = promisify(execFile);
const FOLDER = join(import.meta.dirname, "..", "..", "models");
const MOST_MS = 600_000;
/** In steps. A walk that is longer is not cut short in silence. */
const DEPTH = 100_000;

export type Rule = { mutant: string; rule: string; breaks: string };
export type Model = { name: string; file: string; rules: Rule[]; switches: string[] };
export type Tools = { spin: string; compiler: string };
/** `broke` is what went wrong, in spin's words; undefined where everything holds. */
export type Verdict = { broke: string | undefined; states: number; unreached: string[] };

export const NO_SPIN =
  "SKIPPED, NO MODEL WAS VERIFIED: there is no spin, or no C compiler, and they could not be installed";

export function readModels(): Model[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".pml"))
    .sort()
    .map((name) => {
      const file = join(FOLDER, name);
      const text = readFileSync(file, "utf8");
      const rules = [...text.matchAll(/^ \* rule ([A-Z_]+): (.+) \| (.+)$/gm)].map(
        ([, mutant = "", rule = "", breaks = ""]) => ({ mutant, rule, breaks }),
      );
      const switches = new Set([...text.matchAll(/^#ifn?def ([A-Z_]+)$/gm)].map(([, word = ""]) => word));
      return { name: basename(name, ".pml"), file, rules, switches: [...switches].sort() };
    });
}

export function findTools(): Tools | undefined {
  const spin = debianProgram("spin", "/usr/bin/spin") ?? inPath("spin");
  const compiler = debianProgram("gcc", "/usr/bin/gcc") ?? inPath("cc");
  if (!spin || !compiler) return undefined;
  // Debian has the headers in a package of their own.
  if (!compiles(compiler)) debianProgram("libc6-dev", "/usr/include/stdio.h");
  return compiles(compiler) ? { spin, compiler } : undefined;
}

function inPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(":");
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

const compiles = (compiler: string): boolean =>
  spawnSync(compiler, ["-fsyntax-only", "-xc", "-"], { input: "#include <stdio.h>\n" }).status === 0;

/** The model as it is, or without a rule; with bounds that are quick to walk through where `isQuick`. */
export async function verify(
  { spin, compiler }: Tools,
  { file }: Model,
  { mutant, isQuick = false }: { mutant?: string; isQuick?: boolean } = {},
): Promise<Verdict> {
  const cwd = await mkdtemp(join(tmpdir(), "carillon-model-"));
  const options = { cwd, timeout: MOST_MS, maxBuffer: 2 ** 26 };
  const defines = [...(mutant ? [`-D${mutant}`] : []), ...(isQuick ? ["-DQUICK"] : [])];
  async function walk(spinArgs: string[], compilerArgs: string[], args: string[]): Promise<Verdict> {
    await run(spin, [...defines, ...spinArgs, "-a", file], options);
    // A mutant breaks soon: what takes time is to compile it.
    await run(compiler, [mutant || isQuick ? "-O0" : "-O1", "-w", ...compilerArgs, "-o", "pan", "pan.c"], options);
    // It ends with 0 whatever it finds.
    const { stdout } = await run(join(cwd, "pan"), ["-w22", `-m${DEPTH}`, "-b", ...args], options);
    return verdictOf(stdout);
  }
  try {
    const safe = await walk([], ["-DSAFETY"], []);
    if (safe.broke) return safe;
    const ends = await walk(["-DENDS"], ["-DNFAIR=3"], ["-a", "-f"]);
    return { ...safe, broke: ends.broke, states: safe.states + ends.states };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

function verdictOf(output: string): Verdict {
  const errors = /errors: (\d+)/.exec(output)?.[1];
  const broke = /^pan:1: (.+?) \(at depth \d+\)/m.exec(output)?.[1];
  if (errors === undefined || (errors !== "0") !== (broke !== undefined) || /depth exceeded|too small/.test(output))
    throw new Error(`spin did not come to an end:\n${output}`);
  const unreached = [...output.matchAll(/^\t\S+\.pml:(\d+), state \d+, "(.+)"$/gm)]
    .filter(([, , statement]) => statement !== "-end-")
    .map(([, line, statement]) => `line ${line}: ${statement}`);
  return { broke, states: Number(/([\d.e+]+) states, stored/.exec(output)?.[1] ?? 0), unreached };
}
