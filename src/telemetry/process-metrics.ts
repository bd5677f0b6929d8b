// Figures about the processes behind one port. A process that serves alone has none.

import { Counter, Gauge, type Registry } from "prom-client";
import type { Standing } from "./siblings.ts";

export type ProcessMetrics = ReturnType<typeof createProcessMetrics>;

export function createProcessMetrics(registry: Registry, standing: () => Standing) {
  const registers = [registry];
  new Gauge({
    name: "carillon_processes",
    help: "Processes behind the port: those that serve, and those that are being started or replaced",
    labelNames: ["state"],
    registers,
    collect() {
      const { of, up } = standing();
      this.set({ state: "up" }, up);
      this.set({ state: "down" }, of - up);
    },
  });
  return {
    replaced: new Counter({
      name: "carillon_processes_replaced_total",
      help: "Processes that ended without having been asked to, and were replaced",
      registers,
    }),
  };
}
