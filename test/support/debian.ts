// Programs that npm cannot bring. On a Debian where we are root, as in a container, a missing one is installed.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MOST_MS = 900_000;

/**
 * The old lists suffice more often than not, and fetching new ones takes longer than the package. A server that comes with
 * a service of its own is not started: nobody asked for that one, and it may listen to the whole network.
 */
const INSTALL = `
  test -x "$2" && exit
  policy=/usr/sbin/policy-rc.d
  test -e "$policy" || {
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod +x "$policy"
  }
  install() { apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$1"; }
  install "$1" || { apt-get update -qq && install "$1"; }`;

/** Where the program is; undefined where it is not and cannot be installed: skip then, and say so. */
export function debianProgram(packageName: string, programPath: string): string | undefined {
  // Also where it is there: it may be that another process is installing it, and what it needs is not there yet.
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) install(packageName, programPath);
  return existsSync(programPath) ? programPath : undefined;
}

function install(packageName: string, programPath: string): void {
  if (!existsSync(programPath)) say(`installing Debian's ${packageName} for ${programPath}`);
  // One at a time: the lists have a lock that apt-get does not wait for, and the second to ask finds the program there.
  const args = [join(tmpdir(), "carillon-test-apt.lock"), "sh", "-c", INSTALL, "sh", packageName, programPath];
  const { status, error, stderr } = spawnSync("flock", args, {
    encoding: "utf8",
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    timeout: MOST_MS,
  });
  if (status !== 0) say(`${packageName} could not be installed: ${error?.message ?? stderr.trim()}`);
}

const say = (line: string) => process.stderr.write(`tests: ${line}\n`);
