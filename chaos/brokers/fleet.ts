// The processes of a run with brokers: each has every role that matters here, the sources and the sinks.

import { join } from "node:path";
import type { Fault } from "../history.ts";
import { MUTATED } from "../mutations.ts";
import { behindProxies, openSlot } from "../slot.ts";
import type { BrokerMutant } from "./mutations.ts";
import { FACTS, groupOf } from "./names.ts";
import type { Stage } from "./stage.ts";

type FleetOptions = {
  evidence: string;
  url: string;
  stage: Stage;
  topics: readonly string[];
  processes: number;
  mutant: BrokerMutant | undefined;
  onFault: (fault: Fault) => void;
};

const MUTATE = join(import.meta.dirname, "..", "mutate.ts");

export async function openBrokerFleet(options: FleetOptions) {
  const { evidence, url, stage, topics, processes, mutant, onFault } = options;
  const env = {
    CARILLON_API_KEY: "chaos-with-brokers",
    CARILLON_ROLES: "worker,scheduler,keeper,source,sink",
    CARILLON_CONFIG: join(import.meta.dirname, "config.ts"),
    CARILLON_LEASE_MS: "3000",
    CARILLON_SWEEP_MS: "500",
    CARILLON_POLL_MS: "200",
    CARILLON_SEND_TIMEOUT_MS: "1000",
    CARILLON_DATABASE_CONNECTIONS: "4",
    CARILLON_SOURCES: JSON.stringify(sourcesOf(stage, topics)),
    CARILLON_SINKS: JSON.stringify(sinksOf(stage)),
    ...(mutant && { CHAOS_MUTANT: mutant }),
  };
  const slots = await Promise.all(
    Array.from({ length: processes }, (_, n) =>
      openSlot({
        ...{ name: `carillon-${n + 1}`, directory: evidence, ...behindProxies(url), onFault },
        nodeOptions: mutant ? ["--import", MUTATE] : [],
        ...(mutant && { mustSay: MUTATED }),
        env: () => env,
      }),
    ),
  );
  return {
    slots,
    async start(withinMs: number) {
      for (const slot of slots) slot.start();
      await Promise.all(slots.map((slot) => slot.up(withinMs)));
    },
    async close() {
      for (const slot of slots) slot.kill();
      await Promise.all(slots.map(({ proxy }) => proxy.close()));
    },
  };
}

const sourcesOf = ({ bootstrap }: Stage, topics: readonly string[]) =>
  Object.fromEntries(
    topics.map((topic) => [
      topic,
      { type: "kafka", brokers: [bootstrap], topic, group: groupOf(topic), tenant: "default" },
    ]),
  );

const sinksOf = ({ amqp, bootstrap, clickhouse }: Stage) => ({
  rabbitmq: { type: "rabbitmq", url: amqp, exchange: FACTS },
  kafka: { type: "kafka", brokers: [bootstrap], topic: FACTS },
  ...(clickhouse && { clickhouse: { type: "clickhouse", url: clickhouse.url } }),
});
