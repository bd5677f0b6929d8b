// Facts to a real Kafka.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openKafkaSink } from "#sinks/kafka.ts";
import { type Arrived, sinkConformance } from "../conformance/sink.ts";
import { recordsOf } from "../support/kafka-records.ts";
import { NO_KAFKA, startKafka } from "../support/servers/kafka.ts";
import { tell } from "../support/told.ts";

sinkConformance("kafka", NO_KAFKA, async () => {
  const server = await startKafka();
  if (server === undefined) return undefined;
  const { bootstrap } = server;
  return {
    server,
    async open() {
      const topic = `facts-${randomUUID()}`;
      await server.createTopic(topic, 3, { "max.message.bytes": 50_000 });
      return {
        sink: await openKafkaSink({ type: "kafka", brokers: [bootstrap], topic }, "topics"),
        async arrived() {
          const records = await recordsOf(bootstrap, topic);
          return records.map(({ key, value, headers }): Arrived => {
            const named = new Map([...headers].map(([name, value]) => [String(name), String(value)]));
            const body = JSON.parse(String(value));
            assert.equal(String(key), body.notificationId);
            assert.equal(named.get("ce_type"), `carillon.${body.type}`);
            return { id: named.get("ce_id") ?? "", tenant: named.get("ce_tenant") ?? "", body };
          });
        },
      };
    },
    openWith: (password) =>
      openKafkaSink(
        {
          type: "kafka",
          brokers: [bootstrap],
          topic: "facts",
          sasl: { mechanism: "PLAIN", username: "me", password },
        },
        "topics",
      ),
    refusable: {
      told: () => tell({ detail: { data: "x".repeat(60_000) } }),
      error: /it has about 60\d\d\d bytes, more than the topic facts-.* takes/,
    },
    stop: server.stop,
  };
});
