// Adapters by name, for processes that are told by name whose they are.

import type { WorkerUrls } from "../workers/worker.ts";
import type { Adapter } from "./adapter.ts";
import { bullmqAdapter } from "./bullmq.ts";
import { carillonAdapter } from "./carillon.ts";
import { graphileWorkerAdapter } from "./graphile-worker.ts";
import { pgBossAdapter } from "./pg-boss.ts";

/** As they are where it matters how soon a job begins. */
const ADAPTERS: { readonly [name: string]: (urls: WorkerUrls) => Adapter } = {
  carillon: ({ databaseUrl }) => carillonAdapter(databaseUrl),
  "graphile-worker": ({ databaseUrl }) => graphileWorkerAdapter(databaseUrl),
  "pg-boss": ({ databaseUrl }) => pgBossAdapter(databaseUrl, { notify: true }),
  BullMQ: ({ redisUrl = "" }) => bullmqAdapter(redisUrl),
};

export const PEERS = ["graphile-worker", "pg-boss", "BullMQ"] as const;

export function adapterNamed(name: string, urls: WorkerUrls): Adapter {
  const make = ADAPTERS[name];
  if (!make) throw new Error(`there is no adapter ${name}`);
  return make(urls);
}
