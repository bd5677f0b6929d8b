// How Redis and SQS come and go, in the log: once each time, however often it is tried.

import type { Watch } from "#wire/redis.ts";
import type { Logger } from "./log.ts";

type Log = Pick<Logger, "warn" | "info">;

/** `meaning`: what comes of it. */
export const createRedisFacts = (log: Log, meaning: string): Watch => createComings(log, "Redis", meaning);

export function createComings(log: Log, name: string, meaning: string): Watch {
  let isAway = false;
  return {
    away(error) {
      if (isAway) return;
      isAway = true;
      log.warn({ err: error }, `${name} is away: ${meaning}`);
    },
    back() {
      if (!isAway) return;
      isAway = false;
      log.info(`${name} is back`);
    },
  };
}
