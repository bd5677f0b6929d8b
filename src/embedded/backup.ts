// A backup of the embedded database, taken while it runs: a copy of its files between pg_backup_start() and pg_backup_stop(), and the log that
// was written meanwhile, with which PostgreSQL makes one moment of many.
//
// What may be torn in a file that was copied while it was written, the log has whole: PostgreSQL writes whole pages to it during a backup. A
// replication slot keeps the log from being recycled until we have it. Both end with our connection, whatever becomes of us.
//
// The directory gets its name when everything in it is on the disk, the manifest last. What a kill leaves behind has another name, and no
// manifest; the next backup to the same place removes it.

import { lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import pg from "pg";
import { copyFile, syncAll } from "./copy.ts";
import { makeWhole, removeRemnants } from "./directory.ts";
import { type Entry, type Head, writeManifest } from "./manifest.ts";
import { EmbeddedError } from "./postgres-binaries.ts";
import { logFiles, logFilesBetween } from "./wal.ts";

export type Source = {
  url: string;
  /** <home>/postgres, or where that leads. */
  base: string;
};
export type BackupOptions = {
  version: string;
  signal?: AbortSignal;
  /** `total` is what there was in the beginning. */
  onProgress?: (done: number, total: number) => void;
};
export type Backup = Head & { directory: string; files: number; bytes: number };

/** Their files belong to a running server, or are made anew by every start; the directories must be there. */
const EMPTIED = new Set(
  ["pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"].map(
    (name) => `data/${name}`,
  ),
);
const LEFT_OUT =
  /^(postmaster\.(pid|opts)|backup_label(\.old)?|backup_manifest|tablespace_map(\.old)?|current_logfiles|postgresql\.auto\.conf\.tmp|pg_internal\.init.*|pgsql_tmp.*)$/;
const CONTROL = "data/global/pg_control";

export async function takeBackup(source: Source, target: string, options: BackupOptions): Promise<Backup> {
  const directory = resolve(target);
  const there = await readdir(directory).catch(() => []);
  const isTaken = new EmbeddedError(`${directory} is not empty: name a directory that is not there yet.`);
  if (there.length > 0) throw isTaken;
  await mkdir(dirname(directory), { recursive: true });
  await removeRemnants(directory);
  const client = new pg.Client({ connectionString: source.url, application_name: "carillon backup" });
  // Errors reach us through the query under way; without a listener they would end the process as well.
  client.on("error", () => undefined);
  await client.connect();
  let backup: Backup | undefined;
  try {
    const isMade = await makeWhole(directory, async (temporary) => {
      backup = { directory, ...(await fill(client, source, temporary, options)) };
    });
    if (!isMade || !backup) throw isTaken;
    return backup;
  } finally {
    await client.end();
  }
}

async function fill(
  client: pg.Client,
  { base }: Source,
  into: string,
  { version, signal, onProgress }: BackupOptions,
): Promise<Omit<Backup, "directory">> {
  const begun = await begin(client);
  const plan = await listTree(base, "data");
  const total = plan.reduce((sum, { bytes }) => sum + bytes, 0);
  const entries: Entry[] = [];
  let bytes = 0;
  const copy = async (path: string, isOptional: boolean) => {
    const copied = await copyFile(join(base, path), join(into, path), signal).catch((error: NodeJS.ErrnoException) => {
      // A table that was dropped since.
      if (isOptional && error.code === "ENOENT") return undefined;
      throw error;
    });
    if (!copied) return;
    entries.push({ path, ...copied });
    bytes += copied.bytes;
    onProgress?.(bytes, total);
  };
  for (const { path, isDirectory } of plan) {
    if (!isDirectory) await copy(path, true);
    else {
      await mkdir(join(into, path), { mode: 0o700 });
      entries.push({ path, bytes: 0 });
    }
  }
  await copyControl(base, into, entries);
  const { label, stopLsn } = await end(client);
  await writeFile(join(into, "data", "backup_label"), label, { mode: 0o600, flag: "wx" });
  entries.push({ path: "data/backup_label", ...(await copyFile(join(into, "data", "backup_label"), undefined)) });
  for (const name of await logFiles(
    join(base, "data", "pg_wal"),
    logFilesBetween(label, stopLsn, begun.segmentBytes),
  )) {
    await copy(`data/pg_wal/${name}`, false);
  }
  await copy("password", false);
  const { startLsn, startedAt, postgres } = begun;
  const { rows } = await client.query<{ at: Date }>("select clock_timestamp() as at");
  const head = { carillon: version, postgres, startedAt, endedAt: rows[0]?.at.toISOString() ?? "", startLsn, stopLsn };
  await writeManifest(into, { head, entries });
  await syncAll([...entries.map(({ path }) => join(into, path)), into]);
  return { ...head, files: entries.filter(({ sha256 }) => sha256 !== undefined).length, bytes };
}

type Begun = { startLsn: string; startedAt: string; postgres: string; segmentBytes: number };

async function begin(client: pg.Client): Promise<Begun> {
  // The slot first: from then on nothing of the log goes.
  await client.query("select pg_create_physical_replication_slot($1, true, true)", [`carillon_backup_${process.pid}`]);
  const { rows } = await client.query<Begun>(
    `select clock_timestamp()::text as "startedAt", current_setting('server_version') as postgres,
       pg_size_bytes(current_setting('wal_segment_size'))::float8 as "segmentBytes"`,
  );
  const started = await client.query<{ lsn: string }>("select pg_backup_start('carillon backup', true) as lsn");
  const [begun] = rows;
  if (!begun) throw new EmbeddedError("The database does not answer.");
  return { ...begun, startedAt: new Date(begun.startedAt).toISOString(), startLsn: started.rows[0]?.lsn ?? "" };
}

async function end(client: pg.Client): Promise<{ label: string; stopLsn: string }> {
  const { rows } = await client.query<{ label: string; lsn: string; spaces: string }>(
    "select labelfile as label, lsn, spcmapfile as spaces from pg_backup_stop(false)",
  );
  const [stopped] = rows;
  if (stopped?.spaces !== "") {
    throw new EmbeddedError("The database has tablespaces, which Carillon makes none of: back them up by other means.");
  }
  return { label: stopped.label, stopLsn: stopped.lsn };
}

type Planned = { path: string; isDirectory: boolean; bytes: number };

/** Directories come before what is in them. */
async function listTree(base: string, path: string): Promise<Planned[]> {
  const found: Planned[] = [{ path, isDirectory: true, bytes: 0 }];
  for (const entry of await readdir(join(base, path), { withFileTypes: true })) {
    const inner = `${path}/${entry.name}`;
    if (LEFT_OUT.test(entry.name) || inner === CONTROL) continue;
    if (entry.isSymbolicLink()) {
      throw new EmbeddedError(`${join(base, inner)} is a link: what it leads to would not be in the backup.`);
    }
    if (entry.isDirectory()) found.push(...(EMPTIED.has(inner) ? emptied(inner) : await listTree(base, inner)));
    else if (entry.isFile()) {
      const stats = await lstat(join(base, inner)).catch(() => undefined);
      if (stats) found.push({ path: inner, isDirectory: false, bytes: stats.size });
    }
  }
  return found;
}

const emptied = (path: string): Planned[] =>
  (basename(path) === "pg_wal" ? [path, `${path}/archive_status`, `${path}/summaries`] : [path]).map((one) => ({
    path: one,
    isDirectory: true,
    bytes: 0,
  }));

/** Last, and read until it is the same twice: it is written in place, and has no page in the log. */
async function copyControl(base: string, into: string, entries: Entry[]): Promise<void> {
  let control = await readFile(join(base, CONTROL));
  for (let again = control; ; control = again) {
    again = await readFile(join(base, CONTROL));
    if (again.equals(control)) break;
  }
  await writeFile(join(into, CONTROL), control, { mode: 0o600, flag: "wx" });
  entries.push({ path: CONTROL, ...(await copyFile(join(into, CONTROL), undefined)) });
}
