// Carillon as a library, from its public door.

import { type Carillon, createCarillon } from "../../src/index.ts";
import { type Due, type MixedJob, notification } from "../payload.ts";
import { count, runSql } from "../sql.ts";
import type { Adapter } from "./adapter.ts";

export const clearCarillon = (databaseUrl: string): Promise<unknown> =>
  runSql(databaseUrl, "drop schema if exists carillon cascade");

const scheduled = (i: number, { wallMs, at }: Due) => ({
  ...notification(i, at),
  scheduledFor: new Date(wallMs).toISOString(),
});

const requestOf = ({ at, takesMs, isUrgent, dueMs }: MixedJob) => ({
  ...notification(0, at, takesMs),
  ...(isUrgent && { priority: "urgent" as const }),
  ...(dueMs !== undefined && { scheduledFor: new Date(dueMs).toISOString() }),
});

/** A tenant comes into being with its first key; here without one. */
export const makeTenants = (databaseUrl: string, names: string): Promise<unknown> =>
  runSql(databaseUrl, `insert into carillon.tenants (name) ${names} on conflict (name) do nothing`);

/** A notification counts once it is both on record and in the queue. */
export async function countNotifications(databaseUrl: string): Promise<number> {
  const kept = await count(databaseUrl, "carillon.notifications");
  const ready = await count(databaseUrl, "(select from carillon.ready union all select from carillon.handed) waiting");
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
      const byTenant = new Map([["default", carillon]]);
      const of = (tenant = "default"): Carillon => {
        const known = byTenant.get(tenant) ?? createCarillon({ databaseUrl, tenant });
        byTenant.set(tenant, known);
        return known;
      };
      return {
        one: (i, at) => carillon.send(notification(i, at)),
        batch(from, size) {
          const requests = Array.from({ length: size }, (_, k) => notification(from + k));
          return () => carillon.sendBatch(requests);
        },
        later: (i, due) => carillon.send(scheduled(i, due)),
        batchLater: (from, dues) => carillon.sendBatch(dues.map((due, k) => scheduled(from + k, due))),
        mixed: (jobs) => of(jobs[0]?.tenant).sendBatch(jobs.map(requestOf)),
        async close() {
          for (const one of byTenant.values()) await one.close();
        },
      };
    },
    stored: () => countNotifications(databaseUrl),
    remaining: () =>
      count(
        databaseUrl,
        "(select from carillon.ready union all select from carillon.handed union all select from carillon.leased) waiting",
      ),
  };
}
