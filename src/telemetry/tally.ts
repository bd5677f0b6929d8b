// Counters and histograms for what happens tens of thousands of times a second.
//
// prom-client hashes an object of labels at every observation, which at full speed was a tenth of a worker's time. Here
// labels are looked up once and the figures are plain numbers; prom-client gets them when somebody reads the metrics.

import { Counter, type Registry } from "prom-client";

type Labels = { [name: string]: string };

export type TallyCounter = { inc(key: string, labels: () => Labels): void };

export function tallyCounter(registry: Registry, name: string, help: string, labelNames: string[]): TallyCounter {
  const pending = new Map<string, { labels: Labels; count: number }>();
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      for (const entry of pending.values()) {
        if (entry.count > 0) this.inc(entry.labels, entry.count);
        entry.count = 0;
      }
    },
  });
  return {
    inc(key, labels) {
      const entry = pending.get(key);
      if (entry) entry.count++;
      else pending.set(key, { labels: labels(), count: 1 });
    },
  };
}

export type TallyHistogram = { observe(labelValue: string, value: number): void };

type Series = { counts: number[]; sum: number; count: number };

export function tallyHistogram(
  registry: Registry,
  { name, help, label, buckets }: { name: string; help: string; label: string; buckets: number[] },
): TallyHistogram {
  const series = new Map<string, Series>();
  const metric = {
    name,
    help,
    type: "histogram",
    aggregator: "sum",
    async get() {
      const values = [...series].flatMap(([labelValue, one]) => valuesOf(name, { [label]: labelValue }, buckets, one));
      return { name, help, type: "histogram", aggregator: "sum", values };
    },
    reset: () => series.clear(),
  };
  // The registry takes anything that can be asked for its values; its type knows only its own classes.
  registry.registerMetric(metric as unknown as Counter);
  return {
    observe(labelValue, value) {
      let one = series.get(labelValue);
      if (!one) {
        one = { counts: buckets.map(() => 0), sum: 0, count: 0 };
        series.set(labelValue, one);
      }
      let bucket = 0;
      while (bucket < buckets.length && value > (buckets[bucket] as number)) bucket++;
      if (bucket < buckets.length) one.counts[bucket] = (one.counts[bucket] as number) + 1;
      one.sum += value;
      one.count++;
    },
  };
}

/** As Prometheus wants them: each bucket holds all below it too. */
function valuesOf(name: string, labels: Labels, buckets: number[], { counts, sum, count }: Series) {
  let below = 0;
  const rows = buckets.map((le, n) => {
    below += counts[n] as number;
    return { labels: { le, ...labels }, value: below, metricName: `${name}_bucket` };
  });
  return [
    ...rows,
    { labels: { le: "+Inf", ...labels }, value: count, metricName: `${name}_bucket` },
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ];
}
