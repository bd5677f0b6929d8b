// Metrics of delivery. Figures of the queue are read when somebody asks for them, by queries whose cost is bounded.

import { Counter, Gauge, type Registry } from "prom-client";
import { PRIORITIES } from "#domain/priority.ts";
import { createArchiveMetrics } from "./archive-metrics.ts";
import { createCallbackMetrics } from "./callback-metrics.ts";
import { createChoreMetrics } from "./chore-metrics.ts";
import { createConnectorMetrics } from "./connector-facts.ts";
import { createFeedMetrics } from "./feed-metrics.ts";
import { gaugesOf } from "./gauges.ts";
import type { Stalls } from "./stalls.ts";
import { tallyCounter, tallyHistogram } from "./tally.ts";

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>;

export type QueueFigures = { depth: { [lane: string]: number }; oldestAgeMs: number } & Stalls;

const WAIT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1800];
const SEND_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createDeliveryMetrics(registry: Registry) {
  const registers = [registry];
  const byOutcome = (name: string, help: string) =>
    tallyCounter(registry, name, help, ["channel", "priority", "category"]);
  const histogram = (name: string, help: string, buckets: number[], label: string) =>
    tallyHistogram(registry, { name, help, label, buckets });

  return {
    sent: byOutcome("notifications_sent_total", "Attempts that a provider accepted"),
    failed: byOutcome("notifications_failed_total", "Notifications that ended without being sent"),
    retried: byOutcome("notifications_retried_total", "Attempts that will be made again"),
    leasesLost: new Counter({
      name: "notification_lease_lost_total",
      help: "Settlements refused because the lease was lost",
      registers,
    }),
    leasesSwept: new Counter({
      name: "notification_lease_swept_total",
      help: "Leases taken over from workers that vanished",
      registers,
    }),
    chores: createChoreMetrics(registry),
    archive: createArchiveMetrics(registry),
    callbacks: createCallbackMetrics(registry),
    feed: createFeedMetrics(registry),
    connectors: createConnectorMetrics(registry),
    gone: new Counter({
      name: "notification_gone_total",
      help: "Notifications that were in the queue and not in the record; never seen, would be a bug or somebody's delete",
      registers,
    }),
    queueWait: histogram(
      "notification_queue_wait_seconds",
      "From acceptance to the first claim",
      WAIT_BUCKETS,
      "priority",
    ),
    processing: histogram(
      "notification_processing_duration_seconds",
      "From claim to settlement",
      SEND_BUCKETS,
      "channel",
    ),
    provider: histogram(
      "notification_provider_duration_seconds",
      "The provider's part of it",
      SEND_BUCKETS,
      "provider",
    ),
    limited: tallyCounter(registry, "notification_limited_total", "Sends that a limit made wait", ["kind"]),
    limitWait: histogram("notification_limit_wait_seconds", "How long limits make sends wait", WAIT_BUCKETS, "kind"),
    watchBreakers: (read: ReadBreakers, readReceivers: ReadReceivers) => watchBreakers(registry, read, readReceivers),
    watchQueue: (read: () => Promise<QueueFigures>, onError: (error: unknown) => void) =>
      watchQueue(registry, read, onError),
  };
}

type ReadBreakers = () => { account: string; state: "closed" | "half-open" | "open" }[];
type ReadReceivers = () => { [state: string]: number };

function watchBreakers(registry: Registry, read: ReadBreakers, readReceivers: ReadReceivers): void {
  const registers = [registry];
  new Gauge({
    name: "notification_breaker_state",
    help: "What this worker thinks of a provider: 0 closed, 1 half-open, 2 open",
    labelNames: ["provider"],
    aggregator: "max",
    registers,
    collect() {
      const figures = { closed: 0, "half-open": 1, open: 2 };
      for (const { account, state } of read()) this.set({ provider: account }, figures[state]);
    },
  });
  new Gauge({
    name: "notification_receiver_breakers",
    help: "How many of the servers behind tenants' URLs this worker asks no more, or carefully",
    labelNames: ["state"],
    // They tell each other: most of what one knows of the others know too.
    aggregator: "max",
    registers,
    collect() {
      for (const [state, count] of Object.entries(readReceivers())) this.set({ state }, count);
    },
  });
}

function watchQueue(registry: Registry, read: () => Promise<QueueFigures>, onError: (error: unknown) => void): void {
  const gauge = gaugesOf(registry, read, onError);
  gauge(
    "notification_queue_depth",
    "Notifications ready in each lane; counted up to 10,000",
    (lanes, { depth }) => {
      for (const [priority, count] of Object.entries(depth)) lanes.set({ priority }, count);
    },
    ["priority"],
  );
  gauge("notification_oldest_queued_seconds", "Age of the oldest notification that is ready", (age, { oldestAgeMs }) =>
    age.set(oldestAgeMs / 1000),
  );
  gauge("notification_active_workers", "Workers with a fresh heartbeat", (count, { workers }) => count.set(workers));
  // Neither tenants nor regions are named: they could be made without end. But what a tenant can bring about by naming a region that
  // nobody takes is told apart.
  gauge(
    "notification_untaken",
    "Notifications that no living worker takes, without a region or with one; counted up to 1,000 a flow, of 100 flows",
    (count, { untaken }) => {
      for (const priority of PRIORITIES) {
        for (const region of ["none", "named"]) {
          const some = untaken.filter(
            (flow) => flow.lane === priority && (flow.region === undefined) === (region === "none"),
          );
          count.set(
            { priority, region },
            some.reduce((sum, flow) => sum + flow.count, 0),
          );
        }
      }
    },
    ["priority", "region"],
  );
  gauge(
    "notification_untaken_oldest_seconds",
    "Age of the oldest notification that no living worker takes",
    (age, { untaken }) => age.set(Math.max(0, ...untaken.map(({ oldestAgeMs }) => oldestAgeMs)) / 1000),
  );
  gauge(
    "carillon_paused",
    "How many lanes, channels, tenants and accounts with providers are paused",
    (count, { paused }) => {
      for (const [kind, number] of Object.entries(paused)) count.set({ kind }, number);
    },
    ["kind"],
  );
}
