// UUIDv7: 48 bits of milliseconds, a 12-bit counter, 62 random bits. The counter makes ids of
// one process strictly increase, so that the order of ids is the order of acceptance.
//
// Made here and not in the database, because PostgreSQL has uuidv7() only from version 18 on.

import { randomFillSync } from "node:crypto";

const COUNTER_MAX = 0xfff;
const POOL_BYTES = 8 * 512;

/** Returns a generator; each process needs one. The clock may jump back: ids still increase. */
export function createIds(now: () => number = Date.now): () => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  let lastMs = 0;
  let counter = 0;

  return () => {
    if (used === POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const ms = now();
    if (ms > lastMs) {
      lastMs = ms;
      // A random start in the lower half leaves room to count and keeps ids of two processes apart.
      counter = pool.readUInt16LE(used) & (COUNTER_MAX >> 1);
    } else if (++counter > COUNTER_MAX) {
      lastMs++;
      counter = 0;
    }
    const time = lastMs.toString(16).padStart(12, "0");
    const count = counter.toString(16).padStart(3, "0");
    const high = ((pool.readUInt16LE(used + 2) & 0x3fff) | 0x8000).toString(16);
    const low = pool
      .readUIntLE(used + 2, 6)
      .toString(16)
      .padStart(12, "0");
    used += 8;
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${high}-${low}`;
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const isId = (text: string): boolean => UUID.test(text);
