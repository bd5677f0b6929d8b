// What becomes known of a connection for hints that is lost: a line in the log, and a count.

import type { OnLost } from "#store/connection/listen.ts";
import type { Logger } from "#telemetry/log.ts";
import type { Metrics } from "#telemetry/metrics.ts";

export const onListenerLost =
  (listener: "listen" | "stream", { log, metrics }: { log: Logger; metrics: Metrics }): OnLost =>
  (error) => {
    log.warn({ listener, err: error }, "lost a connection for hints; until there is a new one they are missed");
    metrics.listenersLost.inc({ listener });
  };
