// Gauges that one look fills: they are read together, and one look serves them all. If it fails, what was read last stands.

import { Gauge, type Registry } from "prom-client";

export type Show<Found> = (gauge: Gauge, found: Found) => void;
export type MakeGauge<Found> = (name: string, help: string, show: Show<Found>, labelNames?: string[]) => void;

/** Of what each process reads of the one database the greatest is taken: a sum would mean nothing. */
export function gaugesOf<Found>(
  registry: Registry,
  read: () => Promise<Found>,
  onError: (error: unknown) => void,
): MakeGauge<Found> {
  let reading: Promise<Found | undefined> | undefined;
  const look = () => {
    reading ??= read()
      .catch((error: unknown) => void onError(error))
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  return (name, help, show, labelNames = []) =>
    void new Gauge({
      name,
      help,
      labelNames,
      aggregator: "max",
      registers: [registry],
      async collect() {
        const found = await look();
        if (found) show(this, found);
      },
    });
}
