// A database made of a backup: every file compared with its checksum as it is copied, and recovered before it is called one.
//
// It recovers as an archive would be, so that a new timeline begins: whoever followed what happened after the backup, which is gone, is told
// so, instead of being told other facts under the same positions.

import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { copyFile, syncAll } from "./copy.ts";
import { makeWhole, removeRemnants } from "./directory.ts";
import { fixedSettings, wayTo } from "./embedded.ts";
import { type Head, type Manifest, readManifest } from "./manifest.ts";
import { findPlace, type Note, type Place, populate } from "./place.ts";
import { type Binaries, EmbeddedError, packagedBinaries, runnableBinaries } from "./postgres-binaries.ts";
import { launchServer, stopProgram } from "./server.ts";

const run = promisify(execFile);

export type RestoreOptions = {
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
  onNote?: Note;
  binaries?: Binaries;
};
export type Restored = Head & { files: number; bytes: number };

/** Reads every byte and compares; makes nothing. */
export async function checkBackup(directory: string, options: RestoreOptions = {}): Promise<Restored> {
  const manifest = await readManifest(resolve(directory));
  return copyAll(resolve(directory), manifest, undefined, options);
}

export async function restoreBackup(directory: string, home: string, options: RestoreOptions = {}): Promise<Restored> {
  const from = resolve(directory);
  const { onNote: note = () => undefined } = options;
  const manifest = await readManifest(from);
  const place = await findPlace(resolve(home), note);
  const isTaken = new EmbeddedError(
    `There is a database in ${place.base}, and it is left as it is. Move it away, or set CARILLON_HOME to another directory.`,
  );
  if ((await readdir(place.base).catch(() => [])).length > 0) throw isTaken;
  await removeRemnants(place.base);
  const binaries = await runnableBinaries(options.binaries ?? (await packagedBinaries()), place.user, place.copies);
  let restored: Restored | undefined;
  const isMade = await makeWhole(place.base, async (temporary) => {
    restored = await copyAll(from, manifest, temporary, options);
    await recover(stagedAt(place, temporary), binaries.postgres, options.signal, note);
  });
  if (!isMade || !restored) throw isTaken;
  await populate(place, binaries.initdb);
  return restored;
}

const stagedAt = (place: Place, base: string): Place => ({
  ...place,
  base,
  data: join(base, "data"),
  passwordFile: join(base, "password"),
  log: join(base, "postgres.log"),
});

async function copyAll(
  from: string,
  { head, entries }: Manifest,
  into: string | undefined,
  { signal, onProgress }: RestoreOptions,
): Promise<Restored> {
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  let [files, bytes] = [0, 0];
  for (const { path, sha256, bytes: size } of entries) {
    if (sha256 === undefined) {
      if (into !== undefined) await mkdir(join(into, path), { mode: 0o700 });
      continue;
    }
    const to = into === undefined ? undefined : join(into, path);
    const copied = await copyFile(join(from, path), to, signal).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code !== "ENOENT") throw cause;
      throw new EmbeddedError(`The backup ${from} is not whole: ${path} is missing.`, { cause });
    });
    if (copied.bytes !== size || copied.sha256 !== sha256) {
      throw new EmbeddedError(`The backup ${from} is damaged: ${path} is not what was written.`);
    }
    [files, bytes] = [files + 1, bytes + size];
    onProgress?.(bytes, total);
  }
  if (into !== undefined) await syncAll([...entries.map(({ path }) => join(into, path)), into]);
  return { ...head, files, bytes };
}

/** Until it serves; then it is stopped, and all of it is on the disk. */
async function recover(place: Place, postgres: string, signal: AbortSignal | undefined, note: Note): Promise<void> {
  await writeFile(join(place.data, "recovery.signal"), "", { mode: 0o600, flush: true });
  if (place.user) {
    await chmod(place.base, 0o711);
    await run("chown", ["-R", "-h", `${place.user.uid}:${place.user.gid}`, place.data]);
  }
  const { socketDirectory, connection } = await wayTo(place);
  const settings = {
    ...fixedSettings(socketDirectory),
    // All of the log that is needed came along.
    restore_command: "false",
    // A standby that serves would need as much room as the server had that was backed up.
    hot_standby: "off",
  };
  const server = await launchServer(place, postgres, settings, signal ?? new AbortController().signal, note);
  try {
    const client = new pg.Client(connection);
    client.on("error", () => undefined);
    await client.connect();
    await client.query("checkpoint").finally(() => client.end());
  } finally {
    await stopProgram(server);
    if (dirname(socketDirectory) !== place.base) await rmdir(socketDirectory).catch(() => undefined);
  }
}
