// How Redis comes and goes, in the log: once each time, however often it is tried.

import type { Watch } from "#wire/redis.ts";
import type { Logger } from "./log.ts";

export function createRedisFacts(log: Pick<Logger, "warn" | "info">): Watch {
  let isAway = false;
  return {
    away(error) {
      if (isAway) return;
      isAway = true;
      log.warn({ err: error }, "Redis is away: what is under a limit waits until it is back");
    },
    back() {
      if (!isAway) return;
      isAway = false;
      log.info("Redis is back");
    },
  };
}
