// Figures about the archive. Only the keeper that leads writes there; what waits for it anybody can read.

import { Counter, Gauge, type Registry } from "prom-client";
import type { Trouble } from "#store/archiving.ts";

export type ArchiveMetrics = ReturnType<typeof createArchiveMetrics>;

export function createArchiveMetrics(registry: Registry) {
  const registers = [registry];
  return {
    notifications: new Counter({
      name: "carillon_archived_notifications_total",
      help: "Notifications that were written to the archive and read back",
      registers,
    }),
    bytes: new Counter({
      name: "carillon_archived_bytes_total",
      help: "What they take there, compressed",
      registers,
    }),
    watchTrouble: (read: () => Promise<Trouble>, onError: (error: unknown) => void) =>
      new Gauge({
        name: "carillon_archive_postponed",
        help: "Old weeks that are kept because the archive is away",
        aggregator: "max",
        registers,
        async collect() {
          await read().then(
            ({ parts }) => this.set(parts),
            (error: unknown) => onError(error),
          );
        },
      }),
  };
}
