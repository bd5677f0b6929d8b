// Where the database of a home lives, which user runs it, and how it gets there on the first start.
//
// Normally everything is in <home>/postgres and the server runs as ourselves. PostgreSQL refuses to run as root:
// then it runs as the system user `carillon` if there is one, otherwise as `nobody`, and only data/ and run/
// belong to that user; the directory around them stays root's, so that the server can neither swap the password
// file nor make root write its log through a link. If that user cannot enter the home (a clone in /root, which is
// 0700), the database lives below /var/lib/carillon and <home>/postgres is a link to it. Permissions of
// directories that we did not make are never changed.

import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeReadableDirectory, makeWhole, removeRemnants } from "./directory.ts";
import { EmbeddedError, type ServerUser } from "./postgres-binaries.ts";
import { spawnLeashed, tail } from "./server.ts";

const run = promisify(execFile);

const outside = "/var/lib/carillon";
// sockaddr_un holds 108 bytes on Linux and 104 on macOS, for the directory and the name of the socket.
const longestSocketPathBytes = 100;
export const socketName = ".s.PGSQL.5432";

export type Note = (message: string, details?: Record<string, unknown>) => void;

export type Place = {
  home: string;
  /** data/, run/, password and postgres.log are in here. */
  base: string;
  data: string;
  passwordFile: string;
  log: string;
  /** Where a copy of the binaries may be kept. */
  copies: string;
  user: ServerUser | undefined;
};

export async function findPlace(home: string, note: Note): Promise<Place> {
  const link = join(home, "postgres");
  const isRoot = process.geteuid?.() === 0;
  // Under root's strict umask a new home would be closed to the user that runs the server.
  await (isRoot ? makeReadableDirectory(home) : fs.mkdir(home, { recursive: true }));
  const user = isRoot ? await serverUser(join(link, "data")) : undefined;
  const base = await baseOf(home, link, user, note);
  return {
    home,
    base,
    data: join(base, "data"),
    passwordFile: join(base, "password"),
    log: join(base, "postgres.log"),
    copies: user ? join(outside, "bin") : join(home, "postgres-bin"),
    user,
  };
}

/** Makes sure that there is a database at this place and that the server can use it. */
export async function populate(place: Place, initdb: string): Promise<void> {
  await removeRemnants(place.base);
  if (!existsSync(place.data)) await initialise(place, initdb);
  await linkFromHome(place);
  await checkAccess(place);
}

/** A directory for the socket that only the server's user (and root) can enter. */
export async function claimSocketDirectory(place: Place): Promise<string> {
  const name = `carillon-${hash(place.base, 16)}`;
  for (const directory of [join(place.base, "run"), join(tmpdir(), name), join("/tmp", name)]) {
    const path = join(directory, socketName);
    // Commas separate hosts in libpq, and quoting rules differ between it, the server and drivers: plain names only.
    if (Buffer.byteLength(path) > longestSocketPathBytes || !/^[\w./-]+$/.test(path)) continue;
    await claimDirectory(directory, place.user);
    if (!place.user || (await canEnter(place.user, directory))) return directory;
  }
  throw new EmbeddedError(`No directory is short enough for the socket of the database in ${place.base}.`);
}

async function claimDirectory(directory: string, user: ServerUser | undefined): Promise<void> {
  await fs.mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  // In a shared /tmp anybody may have made it before us, to listen in our place.
  const found = await fs.lstat(directory);
  const ours = found.uid === process.geteuid?.() || found.uid === user?.uid;
  if (!found.isDirectory() || !ours || (found.mode & 0o077) !== 0) {
    throw new EmbeddedError(
      `The socket directory ${directory} was made by another user or is open to others. Remove it and start again.`,
    );
  }
  if (user) await fs.chown(directory, user.uid, user.gid);
}

async function baseOf(home: string, link: string, user: ServerUser | undefined, note: Note): Promise<string> {
  const existing = await fs.lstat(link).catch(() => undefined);
  if (existing) {
    return fs.realpath(link).catch((cause) => {
      // Starting with an empty database instead would look like a loss of all data.
      throw new EmbeddedError(
        `${link} points to a database that is gone or cannot be read. Restore it, or remove the link to start anew.`,
        { cause },
      );
    });
  }
  const real = await fs.realpath(home);
  if (!user || (await canEnter(user, real))) return join(real, "postgres");

  await makeReadableDirectory(outside);
  if (!(await canEnter(user, outside))) {
    throw new EmbeddedError(
      `The user ${user.name}, who runs the database, may enter neither ${home} nor ${outside}. Set CARILLON_HOME to ` +
        "a directory that this user can reach, or set DATABASE_URL to a PostgreSQL of your own.",
    );
  }
  const base = join(outside, hash(home, 12));
  note("the database lives outside the home, because its user cannot enter the home", { home, base, user: user.name });
  return base;
}

/** As a whole: password and data agree, or are not there. */
async function initialise(place: Place, initdb: string): Promise<void> {
  await makeWhole(place.base, async (temporary) => {
    const data = join(temporary, "data");
    const passwordFile = join(temporary, "password");
    const logFile = join(temporary, "postgres.log");
    await fs.mkdir(data, { mode: 0o700 });
    await fs.writeFile(passwordFile, `${randomBytes(24).toString("hex")}\n`, { mode: 0o600, flush: true });
    if (place.user) {
      await fs.chmod(temporary, 0o711);
      for (const path of [data, passwordFile]) await fs.chown(path, place.user.uid, place.user.gid);
    }
    const log = await fs.open(logFile, "a", 0o600);
    const args = ["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--username=carillon", "--no-instructions"];
    const options = { user: place.user, output: log.fd };
    const exit = await spawnLeashed(initdb, [...args, `--pwfile=${passwordFile}`, "-D", data], options).exited;
    await log.close();
    if (exit !== "exit code 0") {
      throw new EmbeddedError(`A new database could not be made in ${place.base} (${exit}):\n${await tail(logFile)}`);
    }
    if (place.user) await fs.chown(passwordFile, 0, 0);
  });
}

/** So that a person who looks into the home finds a database that lives elsewhere. */
async function linkFromHome(place: Place): Promise<void> {
  await fs.symlink(place.base, join(place.home, "postgres")).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

/** The server's user must own its data and be able to reach them. */
async function checkAccess({ base, data, user }: Place): Promise<void> {
  const found = await fs.stat(data).catch((cause) => {
    throw new EmbeddedError(`${base} is there, but holds no database (data). Restore it, or move it away.`, { cause });
  });
  if (!user) {
    if (found.uid === process.geteuid?.()) return;
    throw new EmbeddedError(
      `The database in ${base} belongs to another user (number ${found.uid}). Start Carillon as that user, as it ` +
        "was started before, or set CARILLON_HOME to another directory.",
    );
  }
  // Restored from a backup by root, for instance.
  if (found.uid !== user.uid) await run("chown", ["-R", "-h", `${user.uid}:${user.gid}`, data]);
  if (await canEnter(user, data)) return;
  throw new EmbeddedError(
    `The database in ${base} runs as the user ${user.name}, who may not enter that directory. Give the ` +
      "directories above it search permission for that user (chmod o+x), or move the database elsewhere.",
  );
}

/** The owner of the data if there are any (PostgreSQL insists on it), otherwise carillon or nobody. */
async function serverUser(data: string): Promise<ServerUser> {
  const owner = await fs.stat(data).catch(() => undefined);
  const users = (await fs.readFile("/etc/passwd", "utf8")).split("\n").map((line) => {
    const [name = "", , uid, gid] = line.split(":");
    return { name, uid: Number(uid), gid: Number(gid) };
  });
  if (owner && owner.uid !== 0) {
    const name = users.find(({ uid }) => uid === owner.uid)?.name ?? `with number ${owner.uid}`;
    return { name, uid: owner.uid, gid: owner.gid };
  }
  const user = users.find(({ name }) => name === "carillon") ?? users.find(({ name }) => name === "nobody");
  if (user) return user;
  throw new EmbeddedError(
    "PostgreSQL refuses to run as root, and there is no user `carillon` or `nobody` to run it as. Create a system " +
      "user named carillon, start Carillon as a normal user, or set DATABASE_URL to a PostgreSQL of your own.",
  );
}

/** Asked by trying it as that user: only that sees ACLs and mount options too. */
async function canEnter({ name, uid, gid }: ServerUser, directory: string): Promise<boolean> {
  try {
    await run("/bin/sh", ["-c", 'cd "$1"', "sh", directory], { uid, gid, cwd: "/" });
    return true;
  } catch (error) {
    const exited = error instanceof Error && "code" in error && typeof error.code === "number";
    if (exited) return false;
    throw new EmbeddedError(
      `PostgreSQL refuses to run as root, and nothing can be run as the user ${name} here (${error}). Start Carillon ` +
        "as a normal user, or set DATABASE_URL to a PostgreSQL of your own.",
      { cause: error },
    );
  }
}

function hash(text: string, digits: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}
