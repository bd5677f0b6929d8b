// Opens a source of any type.

import { openKafkaSource } from "./kafka.ts";
import type { SourceSettings } from "./settings.ts";
import type { OpenSource } from "./source.ts";

/** Throws where a package is missing that it needs. */
export const openSource: OpenSource<SourceSettings> = (settings, name, keeping) => {
  switch (settings.type) {
    case "kafka":
      return openKafkaSource(settings, name, keeping);
  }
};
