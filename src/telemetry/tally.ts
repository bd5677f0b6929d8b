// Counters and histograms for what happens tens of thousands of times a second.
//
// prom-client hashes an object of labels at every observation, which at full speed was a tenth of a worker's time. Here
// labels are looked up once and the figures are plain numbers; prom-client gets them when somebody reads the metrics.

import { Counter, type Registry } from "prom-client";

type Labels = { [name: string]: string };

/** Takes the labels' values in the order of their names. */
export type TallyCounter = { inc(...values: string[]): void };

/** A word after the other, so that no key has to be put together. */
type Branch = { next: Map<string, Branch>; count: number };
const newBranch = (): Branch => ({ next: new Map(), count: 0 });

export function tallyCounter(registry: Registry, name: string, help: string, labelNames: string[]): TallyCounter {
  const root = newBranch();
  /** What was counted since somebody read. */
  let counted: { values: string[]; branch: Branch }[] = [];
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      for (const { values, branch } of counted) {
        this.inc(Object.fromEntries(labelNames.map((label, n) => [label, values[n] ?? ""])), branch.count);
        branch.count = 0;
      }
      counted = [];
    },
  });
  return {
    inc(...values) {
      let branch = root;
      for (const value of values) {
        let next = branch.next.get(value);
        if (!next) {
          next = newBranch();
          branch.next.set(value, next);
        }
        branch = next;
      }
      if (branch.count === 0) counted.push({ values, branch });
      branch.count++;
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
