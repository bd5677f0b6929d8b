// What is in a part, line by line, for those who look something up, compare or bring back.
//
// A part is in memory as it is stored, and is compared with its checksum first: nobody acts on what was damaged. Of what it holds, no more
// than a piece is unpacked at a time.

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { Part } from "./manifest.ts";
import { ArchiveError, type ArchiveStore, DamageError } from "./store.ts";

/** A line, as far as somebody looks into it; the rest is as the tables had it. */
export type Line = {
  notification: { tenant: number; id: string };
  events: readonly unknown[];
};

/** Throws ArchiveError where it is not as it was written. */
export async function* linesOf(store: ArchiveStore, part: Part): AsyncGenerator<string, void> {
  const packed = await contentOf(store, part);
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of Readable.from(piecesOf(packed)).pipe(createGunzip())) {
      // Not by a reader of lines: those break at U+2028 as well, which JSON leaves as it is.
      const text: Buffer = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
      let from = 0;
      for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED, from)) {
        yield text.toString("utf8", from, end);
        from = end + 1;
      }
      rest = text.subarray(from);
    }
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause;
    throw new DamageError(`${part.key} cannot be unpacked`, { cause });
  }
  if (rest.length > 0) yield rest.toString();
}

export function parseLine(line: string): Line | undefined {
  try {
    const { notification, events } = JSON.parse(line);
    return typeof notification.id === "string" && typeof notification.tenant === "number" && Array.isArray(events)
      ? { notification, events }
      : undefined;
  } catch {
    return undefined;
  }
}

async function contentOf(store: ArchiveStore, { key, bytes, sha256 }: Part): Promise<Buffer> {
  const stream = await store.get(key);
  if (!stream) throw new DamageError(`${key} is missing`);
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of stream) {
      size += piece.length;
      // However long something else is that stands in its place.
      if (size > bytes) break;
      pieces.push(piece);
    }
  } catch (cause) {
    throw new ArchiveError(`${key} could not be read to its end`, { cause });
  }
  if (size !== bytes) throw new DamageError(`${key} has ${size > bytes ? "more" : "less"} than its ${bytes} bytes`);
  const content = Buffer.concat(pieces);
  if (createHash("sha256").update(content).digest("hex") !== sha256) {
    throw new DamageError(`${key} has another checksum`);
  }
  return content;
}

const LINE_FEED = 10;
const PIECE_BYTES = 65_536;

function* piecesOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += PIECE_BYTES) yield content.subarray(at, at + PIECE_BYTES);
}
