// How Redis comes and goes, in the log: once each time, however often it is tried.

import type { Watch } from "#wire/redis.ts";
import type { Logger } from "./log.ts";

/** `meaning`: what comes of it. */
export function createRedisFacts(log: Pick<Logger, "warn" | "info">, meaning: string): Watch {
  let isAway = false;
  return {
    away(error) {
      if (isAway) return;
      isAway = true;
      log.warn({ err: error }, `Redis is away: ${meaning}`);
    },
    back() {
      if (!isAway) return;
      isAway = false;
      log.info("Redis is back");
    },
  };
}
