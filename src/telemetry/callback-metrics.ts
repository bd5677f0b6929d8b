// Metrics of callbacks, apart from those of the notifications that they are about.

import { Counter, type Registry } from "prom-client";

export function createCallbackMetrics(registry: Registry) {
  const registers = [registry];
  return {
    delivered: new Counter({
      name: "webhooks_delivered_total",
      help: "Attempts to deliver a callback: success is true where the receiver took it",
      labelNames: ["success"],
      registers,
    }),
  };
}
