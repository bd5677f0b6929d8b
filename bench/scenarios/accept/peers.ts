// Who takes part wherever jobs are handed over from Node.

import type { Adapter } from "../../adapters/adapter.ts";
import { bullmqAdapter } from "../../adapters/bullmq.ts";
import { carillonAdapter } from "../../adapters/carillon.ts";
import { graphileWorkerAdapter } from "../../adapters/graphile-worker.ts";
import { pgBossAdapter } from "../../adapters/pg-boss.ts";
import type { World } from "../../scenario.ts";

export const producersIn = ({ databaseUrl, redisUrl }: World): Adapter[] => [
  carillonAdapter(databaseUrl),
  pgBossAdapter(databaseUrl),
  graphileWorkerAdapter(databaseUrl),
  ...(redisUrl === undefined ? [] : [bullmqAdapter(redisUrl)]),
];

/** Fails the whole benchmark: figures of calls that stored nothing are worth nothing. */
export async function checkStored({ name, stored }: Adapter | Omit<Adapter, "open">, expected: number): Promise<void> {
  const found = await stored();
  if (found !== expected) throw new Error(`${name}: ${found} stored of ${expected} sent`);
}
