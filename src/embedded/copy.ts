// Files copied piece by piece, with their checksums; and made sure of on the disk.

import { createHash } from "node:crypto";
import { open } from "node:fs/promises";

const PIECE_BYTES = 128 * 1024;
/** One after the other the disk would wait for us more than we for it. */
const SYNCED_AT_ONCE = 16;

export type Copied = { bytes: number; sha256: string };

/** All that is there when it is read: a file that grows is copied as far as it goes. `signal` stops it between two pieces. */
export async function copyFile(from: string, to: string | undefined, signal?: AbortSignal): Promise<Copied> {
  const source = await open(from, "r");
  const target =
    to === undefined
      ? undefined
      : await open(to, "wx", 0o600).catch(async (error) => {
          await source.close();
          throw error;
        });
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  let bytes = 0;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { bytesRead } = await source.read(piece, 0, PIECE_BYTES);
      if (bytesRead === 0) return { bytes, sha256: hash.digest("hex") };
      const read = piece.subarray(0, bytesRead);
      hash.update(read);
      if (target) await target.writeFile(read);
      bytes += bytesRead;
    }
  } finally {
    await source.close();
    await target?.close();
  }
}

/** Files and directories alike. */
export async function syncAll(paths: readonly string[]): Promise<void> {
  const left = [...paths];
  const work = async () => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) {
      const file = await open(path, "r");
      await file.sync().finally(() => file.close());
    }
  };
  await Promise.all(Array.from({ length: SYNCED_AT_ONCE }, work));
}
