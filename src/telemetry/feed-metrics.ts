// Figures about the feed: what holds it up, who is behind, and who waits for it.

import { Gauge, type Registry } from "prom-client";
import type { FeedStanding } from "#record/feed-standing.ts";
import { gaugesOf } from "./gauges.ts";

export type FeedMetrics = ReturnType<typeof createFeedMetrics>;

export function createFeedMetrics(registry: Registry) {
  return {
    watch: (read: () => Promise<FeedStanding>, onError: (error: unknown) => void) => watch(registry, read, onError),
    watchStreams: (count: () => number) =>
      new Gauge({
        name: "carillon_event_streams",
        help: "Streams of events that are open",
        registers: [registry],
        collect() {
          this.set(count());
        },
      }),
  };
}

function watch(registry: Registry, read: () => Promise<FeedStanding>, onError: (error: unknown) => void): void {
  const gauge = gaugesOf(registry, read, onError);
  gauge(
    "carillon_feed_held_seconds",
    "How long ago the first was written that cannot be told yet, as an older transaction is open",
    (held, { heldMs }) => held.set(heldMs / 1000),
  );
  gauge(
    "carillon_feed_horizon_age_seconds",
    "How long the oldest transaction that has written something has been open: what happens since waits for it",
    (age, { holder }) => age.set((holder?.ageMs ?? 0) / 1000),
  );
  gauge(
    "carillon_follower_lag_seconds",
    "How long ago that happened which a follower of the feed could read next",
    (lag, { followers }) => {
      for (const { name, lagMs } of followers) lag.set({ follower: name }, lagMs / 1000);
    },
    ["follower"],
  );
  gauge(
    "carillon_follower_missed_age_seconds",
    "How long ago a follower of the feed was so far behind that it missed something; nothing where it never was",
    (missed, { followers }) => {
      for (const { name, missedMs } of followers) {
        if (missedMs !== null) missed.set({ follower: name }, missedMs / 1000);
      }
    },
    ["follower"],
  );
}
