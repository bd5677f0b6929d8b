// What is in a backup: a line for each file with its size and checksum, and a last one for all the lines before.
//
// It is written when everything else is there and on the disk. A backup without it, or with one that was cut off, is no backup.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { EmbeddedError } from "./postgres-binaries.ts";

export const MANIFEST = "manifest.jsonl";
const FORMAT = 1;

export type Head = {
  /** Of Carillon, and PostgreSQL's. */
  carillon: string;
  postgres: string;
  startedAt: string;
  endedAt: string;
  /** What was committed before the first is in it; what was committed after the second is not. */
  startLsn: string;
  stopLsn: string;
};
/** Directories have no checksum. */
export type Entry = { path: string; bytes: number; sha256?: string };
export type Manifest = { head: Head; entries: Entry[] };

export async function writeManifest(directory: string, { head, entries }: Manifest): Promise<void> {
  const file = await open(join(directory, MANIFEST), "wx", 0o600);
  const hash = createHash("sha256");
  const write = async (value: unknown) => {
    const line = `${JSON.stringify(value)}\n`;
    hash.update(line);
    await file.write(line);
  };
  try {
    await write({ format: FORMAT, ...head });
    for (const entry of entries) await write(entry);
    await file.write(`${JSON.stringify({ entries: entries.length, sha256: hash.digest("hex") })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Throws what a person is told where it is not whole. */
export async function readManifest(directory: string): Promise<Manifest> {
  const hash = createHash("sha256");
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: createReadStream(join(directory, MANIFEST)) })) lines.push(line);
  } catch (cause) {
    throw new EmbeddedError(`${directory} is no backup: it has no ${MANIFEST}.`, { cause });
  }
  const last = parsed(lines.pop() ?? "");
  for (const line of lines) hash.update(`${line}\n`);
  if (last?.entries !== lines.length - 1 || last.sha256 !== hash.digest("hex")) {
    throw new EmbeddedError(`The backup ${directory} is not whole: its ${MANIFEST} was cut off or changed.`);
  }
  const [head, ...entries] = lines.map(parsed);
  if (head?.format !== FORMAT) throw new EmbeddedError(`The backup ${directory} is of another format than ours.`);
  const outside = entries.find((entry) => !isInside(String(entry?.path)));
  if (outside) throw new EmbeddedError(`The backup ${directory} names a file outside of itself: ${outside.path}.`);
  return { head: head as unknown as Head, entries: entries as unknown as Entry[] };
}

function parsed(line: string): { [name: string]: unknown } | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const isInside = (path: string): boolean =>
  !path.startsWith("/") && path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
