// What happens around sources and sinks becomes metrics and log lines here. What they carry never gets this far.

import { Counter, Gauge, type Registry } from "prom-client";
import type { ConnectorState } from "#domain/connector.ts";
import type { ConnectorOf } from "#store/connectors.ts";
import { gaugesOf } from "./gauges.ts";
import type { Logger } from "./log.ts";

export type ConnectorFigures = (ConnectorOf & { state: ConnectorState })[];

export type ConnectorMetrics = ReturnType<typeof createConnectorMetrics>;

export function createConnectorMetrics(registry: Registry) {
  const registers = [registry];
  const labelNames = ["kind", "name"] as const;
  const lags: { of: ConnectorOf; read: () => number | undefined }[] = [];
  new Gauge({
    name: "connectors_waiting_messages",
    help: "Messages that wait in the partitions that this process reads",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { of, read } of lags) {
        const lag = read();
        if (lag !== undefined) this.set(of, lag);
      }
    },
  });
  return {
    watchLag(of: ConnectorOf, read: () => number | undefined): void {
      lags.push({ of, read });
    },
    carried: new Counter({
      name: "connectors_carried_total",
      help: "Requests that sources brought in and facts that sinks took",
      labelNames,
      registers,
    }),
    refused: new Counter({
      name: "connectors_refused_total",
      help: "Messages that were no requests, and facts that a sink will not have",
      labelNames,
      registers,
    }),
    failures: new Counter({
      name: "connectors_failures_total",
      help: "Times that a source or a sink could not go on, and tried again",
      labelNames,
      registers,
    }),
    watch(read: () => Promise<ConnectorFigures>, onError: (error: unknown) => void): void {
      const gauge = gaugesOf(registry, read, onError);
      const show = (name: string, help: string, shown: ConnectorState) =>
        gauge(
          name,
          help,
          (gauge, all) => {
            for (const { kind, name, state } of all) gauge.set({ kind, name }, state === shown ? 1 : 0);
          },
          [...labelNames],
        );
      show("connectors_failing", "1 where a source or a sink does not go on, and is tried again", "failing");
      show("connectors_paused", "1 where a source or a sink is paused", "paused");
      show("connectors_idle", "1 where no process runs a source or a sink", "idle");
    },
  };
}

export class ConnectorFacts {
  readonly #log: Logger;
  readonly #metrics: ConnectorMetrics;
  readonly #of: ConnectorOf;

  constructor(log: Logger, metrics: ConnectorMetrics, { kind, name }: ConnectorOf) {
    this.#log = log.child({ [kind]: name });
    this.#metrics = metrics;
    this.#of = { kind, name };
  }

  carried(carried: number, refused: number): void {
    if (carried > 0) this.#metrics.carried.inc(this.#of, carried);
    if (refused > 0) this.#metrics.refused.inc(this.#of, refused);
  }

  refused(place: string, error: string): void {
    this.#log.warn({ place, error }, `a ${this.#of.kind} passed over what is refused for good`);
  }

  missed(reason: string): void {
    this.#log.error({ reason }, `a ${this.#of.kind} was too far behind: what is no longer there is left out`);
  }

  failed(error: unknown): void {
    this.#metrics.failures.inc(this.#of);
    this.#log.warn({ err: error }, `a ${this.#of.kind} does not go on; it is tried again`);
  }
}
