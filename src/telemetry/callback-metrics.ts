// Metrics of callbacks, apart from those of the notifications that they are about.

import { Counter, type Registry } from "prom-client";
import { gaugesOf } from "./gauges.ts";

/** `lagMs`: how long ago that happened which is next to be told. */
export type CallbackFigures = { waiting: number; lagMs: number };

export type CallbackMetrics = ReturnType<typeof createCallbackMetrics>;

export function createCallbackMetrics(registry: Registry) {
  const registers = [registry];
  return {
    made: new Counter({ name: "webhooks_made_total", help: "Callbacks made of what happened", registers }),
    delivered: new Counter({
      name: "webhooks_delivered_total",
      help: "Attempts to deliver a callback: success is true where the receiver took it",
      labelNames: ["success"],
      registers,
    }),
    disabled: new Counter({
      name: "webhooks_endpoints_disabled_total",
      help: "Endpoints that were disabled because they are gone, or nothing succeeded for days",
      registers,
    }),
    watch: (read: () => Promise<CallbackFigures>, onError: (error: unknown) => void) => watch(registry, read, onError),
  };
}

function watch(registry: Registry, read: () => Promise<CallbackFigures>, onError: (error: unknown) => void): void {
  const gauge = gaugesOf(registry, read, onError);
  gauge("webhooks_waiting", "Callbacks that may be delivered now; counted up to 10,000", (gauge, { waiting }) =>
    gauge.set(waiting),
  );
  gauge("webhooks_lag_seconds", "How long ago that happened which callbacks are made of next", (gauge, { lagMs }) =>
    gauge.set(lagMs / 1000),
  );
}
