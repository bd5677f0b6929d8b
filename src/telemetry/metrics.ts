// What Prometheus reads at /metrics.
//
// Where several processes serve behind one port, their figures are put together: counters, histograms and most gauges are summed. A
// gauge whose sum means nothing, such as what each of them reads of the one database, names another `aggregator`.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export type Metrics = ReturnType<typeof createMetrics>;

type PoolCounts = { totalCount: number; idleCount: number; waitingCount: number };

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];

  return {
    registry,
    httpDuration: new Histogram({
      name: "carillon_http_request_duration_seconds",
      help: "Time from the request's arrival to its answer",
      labelNames: ["method", "route", "status"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    acceptDuration: new Histogram({
      name: "carillon_accept_commit_duration_seconds",
      help: "Time one commit of accepted notifications took",
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
      registers,
    }),
    acceptRows: new Histogram({
      name: "carillon_accept_commit_rows",
      help: "Notifications that shared one commit",
      buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000],
      registers,
    }),
    failedLogins: new Counter({
      name: "carillon_failed_logins_total",
      help: "Requests whose API key was missing or wrong",
      registers,
    }),
    listenersLost: new Counter({
      name: "carillon_listeners_lost_total",
      help: "Connections for hints that broke or fell silent",
      labelNames: ["listener"],
      registers,
    }),
    /** Called when the figures are read, not on a timer. */
    watchWaiting: (rows: () => number) =>
      new Gauge({
        name: "carillon_accept_waiting",
        help: "Notifications waiting for their commit",
        registers,
        collect() {
          this.set(rows());
        },
      }),
    watchClock: (aheadMs: () => number) =>
      new Gauge({
        name: "carillon_clock_ahead_seconds",
        help: "How far this machine's clock is ahead of the database's, which decides",
        aggregator: "average",
        registers,
        collect() {
          this.set(aheadMs() / 1000);
        },
      }),
    watchDisabledAccounts: (count: () => number) =>
      new Gauge({
        name: "carillon_accounts_disabled",
        help: "Tenants' own accounts with providers that cannot be opened",
        aggregator: "max",
        registers,
        collect() {
          this.set(count());
        },
      }),
    watchPools: (pools: { [name: string]: PoolCounts }) =>
      new Gauge({
        name: "carillon_pool_connections",
        help: "Connections to PostgreSQL, and callers waiting for one",
        labelNames: ["pool", "state"],
        registers,
        collect() {
          for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
            this.set({ pool, state: "busy" }, totalCount - idleCount);
            this.set({ pool, state: "idle" }, idleCount);
            this.set({ pool, state: "waiting" }, waitingCount);
          }
        },
      }),
  };
}
