// Metrics of the locks on deliveries. There are none where locks are off.

import type { Registry } from "prom-client";
import { tallyCounter, tallyHistogram } from "./tally.ts";

const BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1];

export type LockMetrics = {
  failed(channel: string, reason: string): void;
  asked(channel: string, seconds: number): void;
};

export function createLockMetrics(registry: Registry): LockMetrics {
  const failures = tallyCounter(
    registry,
    "notification_lock_acquisition_failures_total",
    "Deliveries that went on without their lock, or lost it",
    ["channel", "reason"],
  );
  const durations = tallyHistogram(registry, {
    name: "notification_lock_acquisition_duration_seconds",
    help: "From asking for a delivery's lock to the answer",
    label: "channel",
    buckets: BUCKETS,
  });
  return {
    failed: (channel, reason) => failures.inc(channel, reason),
    asked: durations.observe,
  };
}
