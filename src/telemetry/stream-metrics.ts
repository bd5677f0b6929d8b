// Figures about streams of inboxes.

import { Counter, Gauge, type Registry } from "prom-client";

export type StreamMetrics = ReturnType<typeof createStreamMetrics>;

export function createStreamMetrics(registry: Registry) {
  const registers = [registry];
  return {
    ended: new Counter({
      name: "carillon_streams_ended_total",
      help: "Streams of inboxes that ended, by reason",
      labelNames: ["reason"],
      registers,
    }),
    told: new Counter({
      name: "carillon_stream_updates_total",
      help: "Updates told to readers of streams",
      registers,
    }),
    watchOpen: (count: () => number) =>
      new Gauge({
        name: "carillon_streams",
        help: "Streams of inboxes that are open",
        registers,
        collect() {
          this.set(count());
        },
      }),
  };
}
