// An archive in a directory: a disk, or something that is mounted.
//
// Written beside its place, flushed, linked or renamed into it, and the directory flushed: after a power cut it is whole or not there. What a
// killed process leaves beside ends with .part and is looked at by nobody.

import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ArchiveError, type ArchiveStore, type Stored } from "./store.ts";

const HALF = ".part";

export function directoryStore(root: string): ArchiveStore {
  const pathOf = (key: string) => join(root, key);
  return {
    place: root,
    put: (key, content, { sha256, ifAbsent }) =>
      told(async () => {
        if (createHash("sha256").update(content).digest("hex") !== sha256) {
          throw new ArchiveError("the content is not what it was to be");
        }
        const path = pathOf(key);
        await mkdir(dirname(path), { recursive: true });
        const half = `${path}.${randomBytes(6).toString("hex")}${HALF}`;
        try {
          await writeThrough(half, content);
          if (ifAbsent) {
            if (!(await linked(half, path))) return false;
          } else await rename(half, path);
          for (let at = dirname(path); at.length >= root.length; at = dirname(at)) await flush(at);
          return true;
        } finally {
          await rm(half, { force: true });
        }
      }),
    get: (key) =>
      told(async () => {
        const file = await unlessMissing(open(pathOf(key)));
        return file && createReadStream("", { fd: file });
      }),
    head: (key) => told(async () => (await unlessMissing(stat(pathOf(key))))?.size),
    async *list(prefix) {
      // Directories below that the prefix leads into; within them every name is looked at.
      const base = prefix.slice(0, prefix.lastIndexOf("/") + 1);
      for await (const stored of below(root, base)) if (stored.key.startsWith(prefix)) yield stored;
    },
    close: async () => {},
  } satisfies ArchiveStore;
}

async function* below(root: string, base: string): AsyncGenerator<Stored> {
  const entries = await told(async () => unlessMissing(readdir(join(root, base), { withFileTypes: true })));
  // In the order of keys, in which a directory's name ends with a slash.
  const names = (entries ?? []).map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  for (const name of names) {
    if (name.endsWith("/")) yield* below(root, base + name);
    else if (!name.endsWith(HALF)) {
      const found = await told(async () => unlessMissing(stat(join(root, base, name))));
      if (found) yield { key: base + name, bytes: found.size };
    }
  }
}

async function writeThrough(path: string, content: Buffer): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function flush(directory: string): Promise<void> {
  const file = await open(directory);
  await file.sync().finally(() => file.close());
}

/** False where something is there: a link, unlike a rename, replaces nothing. */
async function linked(half: string, path: string): Promise<boolean> {
  try {
    await link(half, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function unlessMissing<Value>(looking: Promise<Value>): Promise<Value | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function told<Value>(act: () => Promise<Value>): Promise<Value> {
  try {
    return await act();
  } catch (cause) {
    if (cause instanceof ArchiveError || codeOf(cause) === "") throw cause;
    throw new ArchiveError(`the directory of the archive cannot be used (${codeOf(cause)})`, { cause });
  }
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");
