// What happens on the way into the archive, as figures and log lines.

import type { ArchiveFacts } from "#archive/retire.ts";
import type { ArchiveMetrics } from "./archive-metrics.ts";
import type { Logger } from "./log.ts";

export function createArchiveFacts(log: Logger, figures: ArchiveMetrics): ArchiveFacts {
  return {
    archived({ name, week, notifications, events, parts }) {
      const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
      figures.notifications.inc(notifications);
      figures.bytes.inc(bytes);
      log.info({ archive: name, week, notifications, events, parts: parts.length, bytes }, "archived");
    },
    archivePostponed(part, error) {
      log.warn({ err: error, part }, "the archive is away: nothing is dropped until it is back");
    },
  };
}
