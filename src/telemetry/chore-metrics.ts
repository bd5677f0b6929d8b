// Figures about the keeper's chores. Only the keeper that leads has any.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type ChoreMetrics = ReturnType<typeof createChoreMetrics>;

export function createChoreMetrics(registry: Registry) {
  const shape = { labelNames: ["chore"], registers: [registry] };
  return {
    duration: new Histogram({
      name: "carillon_chore_duration_seconds",
      help: "Time a chore of the keeper took, all its steps together",
      buckets: [0.01, 0.1, 1, 10, 60, 600],
      ...shape,
    }),
    rows: new Counter({ name: "carillon_chore_rows_total", help: "What chores of the keeper dealt with", ...shape }),
    failures: new Counter({
      name: "carillon_chore_failures_total",
      help: "Chores of the keeper that failed or were cut off; they are tried again",
      ...shape,
    }),
    succeededAt: new Gauge({
      name: "carillon_chore_last_success_timestamp_seconds",
      help: "When a chore of the keeper was last done to the end",
      aggregator: "max",
      ...shape,
    }),
  };
}
