// The keeper: housekeeping once at the start and then every hour.

import type { Queryable } from "../store/database.ts";
import { forgetExpiredKeys, makePartitions } from "../store/housekeeping.ts";
import type { Logger } from "../telemetry/log.ts";

export type Running = { stop(): Promise<void> };

const EVERY_MS = 3_600_000;
const BATCH = 5_000;

export function startKeeper({ db, log }: { db: Queryable; log: Logger }): Running {
  let isStopped = false;
  let round = Promise.resolve();

  async function keep(): Promise<void> {
    const partitions = await makePartitions(db);
    let keys = 0;
    for (let gone = BATCH; gone === BATCH && !isStopped; keys += gone) gone = await forgetExpiredKeys(db, BATCH);
    if (partitions + keys > 0) log.info({ partitions, keys }, "kept house");
  }
  // Partitions are made eight weeks ahead, so a round that fails can wait for the next.
  const begin = () => {
    round = keep().catch((error: unknown) => log.warn({ err: error }, "housekeeping failed, trying again in an hour"));
  };
  begin();
  const timer = setInterval(begin, EVERY_MS);
  return {
    stop() {
      isStopped = true;
      clearInterval(timer);
      return round;
    },
  };
}
