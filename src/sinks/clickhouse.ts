// Not built yet.

import type { SettingsOfSink } from "./settings.ts";
import type { OpenSink } from "./sink.ts";

export const openClickHouse: OpenSink<SettingsOfSink<"clickhouse">> = async () => {
  throw new Error("not built yet");
};
