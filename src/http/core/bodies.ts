// How much of requests' bodies a process has in hand at once. What is being read is in memory before anybody can judge it, and a
// batch may have megabytes: so tenants share the room, and whoever has nothing in it always gets in.

import { Problem } from "#domain/problems.ts";

export type Bodies = {
  /** Takes room for a body, or throws the problem. The answer gives it back. */
  take(tenant: number, bytes: number): () => void;
};

/** Four of the largest batches. With what is made of them, several times as much memory. */
const MOST_BYTES = 64 * 1024 * 1024;
/** Not worth counting: the connection itself takes as much. */
export const SMALL_BYTES = 16_384;

export function createBodies(): Bodies {
  const parts = new Map<number, number>();
  return {
    take(tenant, bytes) {
      const before = parts.get(tenant) ?? 0;
      const parties = parts.size + (before > 0 ? 0 : 1);
      if (before > 0 && before + bytes > MOST_BYTES / parties) {
        const detail = "too much of what this tenant sends is being read already";
        throw new Problem("TOO_MANY_REQUESTS", detail, { retryAfterSeconds: 1 });
      }
      parts.set(tenant, before + bytes);
      return () => {
        const left = (parts.get(tenant) ?? 0) - bytes;
        if (left > 0) parts.set(tenant, left);
        else parts.delete(tenant);
      };
    },
  };
}
