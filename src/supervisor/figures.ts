// The figures of all processes put together: what each of them said last, and what those had counted that are gone.
//
// A counter that fell back when a process ended would be taken for one that began anew, and all that the others had counted so far
// for new: so what the dead had counted stays in the sum, as far as somebody has seen it.

import { AggregatorRegistry } from "prom-client";
import type { ProcessFigures } from "#telemetry/siblings.ts";

export type Figures = {
  say(process: number, figures: ProcessFigures): void;
  /** That process has ended. */
  leave(process: number): void;
  /** As Prometheus reads them, with the supervisor's own. */
  text(own: ProcessFigures): Promise<string>;
};

export function createFigures(): Figures {
  const said = new Map<number, ProcessFigures>();
  let left = Promise.resolve<ProcessFigures>([]);
  return {
    say: (process, figures) => void said.set(process, figures),
    leave(process) {
      const counted = said
        .get(process)
        ?.filter(({ type }) => String(type) === "counter" || String(type) === "histogram");
      said.delete(process);
      if (counted) left = left.then((before) => AggregatorRegistry.aggregate([before, counted]).getMetricsAsJSON());
    },
    async text(own) {
      const all = [...said.values(), await left, own];
      return AggregatorRegistry.aggregate(all.map(asWeRead)).metrics();
    },
  };
}

/** Where prom-client's own figures are put together in a way that would hide what they are watched for. */
const asWeRead = (figures: ProcessFigures): ProcessFigures =>
  figures.map((metric) => {
    const { name, aggregator } = metric;
    // One process that hardly gets to the processor must not look half as bad beside one that does.
    if (name.startsWith("nodejs_eventloop_lag_") && aggregator === "average") return { ...metric, aggregator: "max" };
    if (name === "process_start_time_seconds") return { ...metric, aggregator: "min" };
    return metric;
  });
