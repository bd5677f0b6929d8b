// Packages that only some settings need are looked for before anything is made: whoever lacks one hears it at once, and nothing is left half begun.

import type { Config } from "#config/read.ts";
import { openSink } from "#sinks/open.ts";
import { loadKafka } from "#wire/kafka-client.ts";
import { loadRedis } from "#wire/redis.ts";

/** Throws UnmetNeed. Opening a sink loads what it needs, and connects to nobody. */
export async function requirePackages({ roles, sources, sinks, limitsIn }: Config): Promise<void> {
  if (limitsIn === "redis") await loadRedis("CARILLON_LIMITS_IN=redis");
  if (roles.includes("source")) for (const name of Object.keys(sources)) await loadKafka(`The source ${name}`);
  if (!roles.includes("sink")) return;
  for (const [name, settings] of Object.entries(sinks)) await (await openSink(settings, name)).close();
}
