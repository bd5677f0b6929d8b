// Not built yet.

import type { SettingsOfSink } from "./settings.ts";
import type { OpenSink } from "./sink.ts";

export const openKafkaSink: OpenSink<SettingsOfSink<"kafka">> = async () => {
  throw new Error("not built yet");
};
