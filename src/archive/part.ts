// A part of an archive: lines of JSON, compressed, never more of them than fit into memory.
//
// While a page is compressed, in a thread of its own, the next one is read. Compression of level 4 takes 4 µs a line and a sixth of what
// reading it does; level 6 took twice that for a hundredth less.

import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Page, Place } from "#store/archiving.ts";
import type { Part } from "./manifest.ts";
import { ArchiveError, type ArchiveStore } from "./store.ts";

/** Two parts are in memory at a time: one is read while the one before is sent. */
const MOST_ROWS = 20_000;
const MOST_BYTES = 32 * 1024 * 1024;
/** Compressed: what is in memory. Only lines that hardly become shorter reach it. */
const MOST_PACKED_BYTES = 4 * 1024 * 1024;
const LEVEL = 4;

/** Not yet in the store. */
export type Packed = { part: Part; content: Buffer; last: Place };

/** Of the pages as long as there are any and they fit; undefined where there is none. `read` gives an empty one at the end. */
export async function packPart(
  name: string,
  number: number,
  after: Place,
  read: ReadPage,
): Promise<Packed | undefined> {
  const gzip = createGzip({ level: LEVEL });
  const pieces: Buffer[] = [];
  let packedBytes = 0;
  gzip.on("data", (piece: Buffer) => {
    pieces.push(piece);
    packedBytes += piece.length;
  });
  const packed = finished(gzip);
  // It fails together with what is written below, which is awaited.
  packed.catch(() => undefined);
  const write = createWriter(gzip);
  const tally = createTally();
  let last = after;
  try {
    let writing: Promise<void> = Promise.resolve();
    while (tally.rows() < MOST_ROWS && tally.bytes() < MOST_BYTES && packedBytes < MOST_PACKED_BYTES) {
      const [page] = await Promise.all([read(last), writing]);
      if (page.ids.length === 0) break;
      last = tally.count(page);
      writing = write(page.lines);
      // Awaited with the next page.
      writing.catch(() => undefined);
    }
    await writing;
    gzip.end();
    await packed;
    const content = Buffer.concat(pieces);
    if (tally.rows() === 0) return undefined;
    const sha256 = createHash("sha256").update(content).digest("hex");
    // The checksum in its name: what two writers call the same is the same.
    const key = `${name}/${String(number).padStart(5, "0")}-${sha256.slice(0, 12)}.jsonl.gz`;
    return { part: { key, bytes: content.length, sha256, ...tally.told() }, content, last };
  } finally {
    gzip.destroy();
  }
}
export type ReadPage = (after: Place) => Promise<Page>;

/** Page after page through the same memory: what each leaves behind would be freed too late for a process that is to stay small. */
function createWriter(gzip: ReturnType<typeof createGzip>): (lines: string) => Promise<void> {
  let room = Buffer.allocUnsafeSlow(ROOM_BYTES);
  return (lines) => {
    const bytes = Buffer.byteLength(lines);
    if (bytes >= room.length) room = Buffer.allocUnsafeSlow(bytes + 1);
    room.write(lines);
    room[bytes] = LINE_FEED;
    return new Promise((resolve, reject) => {
      gzip.write(room.subarray(0, bytes + 1), (error) => (error ? reject(error) : resolve()));
    });
  };
}
const ROOM_BYTES = 1024 * 1024;
const LINE_FEED = 10;

export const putPart = (store: ArchiveStore, { part: { key, sha256 }, content }: Packed): Promise<boolean> =>
  store.put(key, content, { sha256, type: "application/gzip", ifAbsent: false });

/** Every byte of it, as it is in the store: undefined where it is what it was written as, else what is wrong. */
export async function faultOf(store: ArchiveStore, { key, bytes, sha256 }: Part): Promise<string | undefined> {
  const stream = await store.get(key);
  if (!stream) return `${key} is missing`;
  const hash = createHash("sha256");
  let size = 0;
  await readAll(key, stream, (piece) => {
    size += piece.length;
    hash.update(piece);
  });
  if (size !== bytes) return `${key} has ${size} bytes instead of ${bytes}`;
  return hash.digest("hex") === sha256 ? undefined : `${key} has another checksum`;
}

async function readAll(key: string, stream: Readable, take: (piece: Buffer) => void): Promise<void> {
  try {
    await pipeline(stream, async (pieces: AsyncIterable<Buffer>) => {
      for await (const piece of pieces) take(piece);
    });
  } catch (cause) {
    throw new ArchiveError(`${key} could not be read to its end`, { cause });
  }
}

/** What pages hold together. */
function createTally() {
  let [notifications, events, callbacks, bytes] = [0, 0, 0, 0];
  let [firstId, lastId] = ["", ""];
  let [firstTenant, lastTenant] = [0, 0];
  return {
    rows: () => notifications,
    bytes: () => bytes,
    /** Answers with the page's last place. */
    count({ lines, ids, tenants, events: ofPage }: Page): Place {
      if (notifications === 0) firstTenant = tenants[0] ?? 0;
      for (const id of ids) {
        if (firstId === "" || id < firstId) firstId = id;
        if (id > lastId) lastId = id;
      }
      lastTenant = tenants.at(-1) ?? 0;
      callbacks += tenants.filter((tenant) => tenant < 0).length;
      notifications += ids.length;
      events += ofPage;
      bytes += lines.length;
      return { tenant: lastTenant, id: ids.at(-1) ?? "" };
    },
    told: () => ({ notifications, events, callbacks, firstId, lastId, firstTenant, lastTenant }),
  };
}
