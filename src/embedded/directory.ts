// Directories that are there completely or not at all.
//
// They are filled under a temporary name and then renamed, so a kill -9 or a power cut in the middle leaves nothing
// half-made, and of several processes that make the same one at once the first wins and the others use its work.

import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Of this process. A restarted container often has the same pids as before, so a pid in the name is not enough. */
const inProgress = new Set<string>();

/** False where somebody else's was there first. */
export async function makeWhole(target: string, fill: (temporary: string) => Promise<void>): Promise<boolean> {
  const temporary = `${target}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  inProgress.add(temporary);
  try {
    await mkdir(temporary, { mode: 0o700 });
    await fill(temporary);
    await rename(temporary, target);
    // Or a power cut could bring the temporary name back, which the next start would remove with all that is in it.
    const parent = await open(dirname(target), "r");
    await parent.sync().finally(() => parent.close());
    return true;
  } catch (error) {
    await rm(temporary, { recursive: true, force: true, maxRetries: 5 });
    const isThere = error instanceof Error && "code" in error && ["ENOTEMPTY", "EEXIST"].includes(String(error.code));
    if (!isThere) throw error;
    return false;
  } finally {
    inProgress.delete(temporary);
  }
}

/** What processes that were killed while they made this directory have left behind. */
export async function removeRemnants(target: string): Promise<void> {
  const parent = dirname(target);
  const prefix = `${basename(target)}.new-`;
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN;
    if (Number.isNaN(pid) || inProgress.has(path) || (pid !== process.pid && isAlive(pid))) continue;
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** For all users to enter, whatever the umask. Modes are only set on what we make, never on what we find. */
export async function makeReadableDirectory(directory: string): Promise<void> {
  const first = await mkdir(directory, { recursive: true });
  if (first === undefined) return;
  for (let made = directory; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
