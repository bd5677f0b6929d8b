// Somebody who sends without a broker, so that there are facts also while Kafka is away: sinks are cut off and killed with work in hand.

import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "../journal.ts";

/** What it sends has keys that begin so. */
export const NEIGHBOUR = "neighbour ";

const ROUND_MS = 100;
const EACH_ROUND = 4;

export function startNeighbour(url: string): { stop(): Promise<void> } {
  let isStopped = false;
  const running = withClient(url, async (db) => {
    for (let n = 0; !isStopped; n++) {
      const request = {
        channel: "sms",
        recipient: { phone: "+4930123456" },
        content: { body: "Hello" },
        retryPolicy: { maxAttempts: 3, backoffMultiplier: 1, maxBackoffMs: 300 },
        metadata: { key: `${NEIGHBOUR}${n}` },
      };
      const sends = Array.from({ length: EACH_ROUND }, () => "carillon.send($1, 'default')");
      await db.query(`select ${sends.join(", ")}`, [request]);
      await sleep(ROUND_MS);
    }
  });
  return {
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
