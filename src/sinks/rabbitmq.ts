// Not built yet.

import type { SettingsOfSink } from "./settings.ts";
import type { OpenSink } from "./sink.ts";

export const openRabbit: OpenSink<SettingsOfSink<"rabbitmq">> = async () => {
  throw new Error("not built yet");
};
