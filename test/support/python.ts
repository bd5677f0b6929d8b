// Packages of Python for a test: into a virtual environment of our own, once, beside what npm keeps.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
export const cache = join(import.meta.dirname, "../../node_modules/.cache");

/** Where it is; or why it cannot be had. Two that make it at the same time make two, and one stays. */
export async function pythonWith(name: string, wanted: string): Promise<{ home: string } | { missing: string }> {
  const home = join(cache, name);
  if (existsSync(home)) return { home };
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(`${home}-`);
  try {
    await run("python3", ["-m", "venv", making]);
    await run(join(making, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]);
    await rename(making, home).catch((error: unknown) => {
      if (!existsSync(home)) throw error;
    });
    return { home };
  } catch (error) {
    return { missing: `no ${wanted} from PyPI: ${String(error).split("\n")[0]}` };
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}
