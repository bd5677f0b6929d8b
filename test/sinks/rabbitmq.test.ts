// Facts to a real RabbitMQ.

import { openRabbit } from "#sinks/rabbitmq.ts";
import { type Arrived, sinkConformance } from "../conformance/sink.ts";
import { makeQueue } from "../support/rabbitmq-queue.ts";
import { NO_RABBITMQ, startRabbitMQ } from "../support/servers/rabbitmq.ts";
import { tell } from "../support/told.ts";

sinkConformance("rabbitmq", NO_RABBITMQ, async () => {
  const server = await startRabbitMQ();
  if (server === undefined) return undefined;
  const { url } = server;
  return {
    server,
    async open() {
      // Not for `read`.
      const queue = await makeQueue(url, ["accepted", "retrying", "postponed", "sent", "delivered"]);
      const sink = await openRabbit({ type: "rabbitmq", url, exchange: queue.exchange }, "queues");
      return {
        sink,
        async arrived() {
          const messages = await queue.taken();
          return messages.map(
            ({ content, properties: { messageId, headers } }): Arrived => ({
              id: String(messageId),
              tenant: String(headers?.["cloudEvents:tenant"]),
              body: JSON.parse(String(content)),
            }),
          );
        },
      };
    },
    openWith: (password) => openRabbit({ type: "rabbitmq", url: url.replace(/:guest@/, `:${password}@`) }, "queues"),
    refusable: {
      told: () => tell({ type: "read" }),
      error: /no queue is bound to the exchange "facts-.*" for the routing key "read" \(NO_ROUTE\)/,
    },
    stop: server.stop,
  };
});
