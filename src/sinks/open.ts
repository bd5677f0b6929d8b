// Sinks by their types.

import { openClickHouse } from "./clickhouse.ts";
import { openKafkaSink } from "./kafka.ts";
import { openRabbit } from "./rabbitmq.ts";
import type { SinkSettings } from "./settings.ts";
import type { Sink } from "./sink.ts";

/** Throws where the package that it needs is not installed. */
export function openSink(settings: SinkSettings, name: string): Promise<Sink> {
  switch (settings.type) {
    case "rabbitmq":
      return openRabbit(settings, name);
    case "kafka":
      return openKafkaSink(settings, name);
    case "clickhouse":
      return openClickHouse(settings, name);
  }
}
