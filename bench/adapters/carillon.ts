// Carillon as a library, from its public door.

import { type Carillon, createCarillon } from "../../src/index.ts";
import { type Due, notification } from "../payload.ts";
import { count, runSql } from "../sql.ts";
import type { Adapter } from "./adapter.ts";

export const clearCarillon = (databaseUrl: string): Promise<unknown> =>
  runSql(databaseUrl, "drop schema if exists carillon cascade");

const scheduled = (i: number, { wallMs, at }: Due) => ({
  ...notification(i, at),
  scheduledFor: new Date(wallMs).toISOString(),
});

/** A notification counts once it is both on record and in the queue. */
export async function countNotifications(databaseUrl: string): Promise<number> {
  const kept = await count(databaseUrl, "carillon.notifications");
  const ready = await count(databaseUrl, "carillon.ready");
  return Math.min(kept, ready);
}

export function carillonAdapter(databaseUrl: string): Adapter {
  return {
    name: "carillon",
    settings: "createCarillon({ databaseUrl }), defaults",
    async clear() {
      await clearCarillon(databaseUrl);
    },
    async open() {
      // Migrates at the first send, which the warm-up makes.
      const carillon: Carillon = createCarillon({ databaseUrl });
      return {
        one: (i, at) => carillon.send(notification(i, at)),
        batch(from, size) {
          const requests = Array.from({ length: size }, (_, k) => notification(from + k));
          return () => carillon.sendBatch(requests);
        },
        later: (i, due) => carillon.send(scheduled(i, due)),
        batchLater: (from, dues) => carillon.sendBatch(dues.map((due, k) => scheduled(from + k, due))),
        close: () => carillon.close(),
      };
    },
    stored: () => countNotifications(databaseUrl),
    remaining: () => count(databaseUrl, "(select from carillon.ready union all select from carillon.leased) waiting"),
  };
}
