// UUIDv7: 48 bits of milliseconds, a 12-bit counter, 62 random bits. The counter makes ids of
// one process strictly increase, so that the order of ids is the order of acceptance.
//
// Made here and not in the database, because PostgreSQL has uuidv7() only from version 18 on.

import { randomFillSync } from "node:crypto";

const COUNTER_MAX = 0xfff;
/** Random bytes an id takes: two for the counter's start, eight for its end. */
const ID_BYTES = 10;
const POOL_BYTES = ID_BYTES * 400;

/** The clock was set back on purpose: ids that went on from before would be of another week than what they name. */
const SET_BACK_MS = 86_400_000;

/** Returns a generator; each process needs one. The clock may jump back: ids still increase, unless it was by a day. */
export function createIds(now: () => number = Date.now): () => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  let lastMs = 0;
  let counter = 0;

  let prefix = "";

  return () => {
    if (used === POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const ms = now();
    // A random start in the lower half leaves room to count and keeps ids of two processes apart.
    if (ms > lastMs || ms < lastMs - SET_BACK_MS) begin(ms, pool.readUInt16LE(used) & (COUNTER_MAX >> 1));
    else if (++counter > COUNTER_MAX) begin(lastMs + 1, 0);
    const count = counter.toString(16).padStart(3, "0");
    const high = ((pool.readUInt16LE(used + 2) & 0x3fff) | 0x8000).toString(16);
    const low = pool.toString("hex", used + 4, used + ID_BYTES);
    used += ID_BYTES;
    return `${prefix}${count}-${high}-${low}`;
  };

  function begin(ms: number, from: number): void {
    lastMs = ms;
    counter = from;
    const time = ms.toString(16).padStart(12, "0");
    prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }
}

/** When it was made, by the clock of whoever made it. */
export const madeAtMs = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const isId = (text: string): boolean => UUID.test(text);
