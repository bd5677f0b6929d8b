// The servers of a run, each behind a proxy: all clients come by it, so that every connection can be cut or fall silent.

import { startClickHouse } from "../../test/support/servers/clickhouse.ts";
import { type Kafka, startKafka } from "../../test/support/servers/kafka.ts";
import { startRabbitMQ } from "../../test/support/servers/rabbitmq.ts";
import type { Server } from "../../test/support/servers/server.ts";
import { openSilentProxy, type SilentProxy } from "../../test/support/silent-proxy.ts";

export type Place = { name: "kafka" | "rabbitmq" | "clickhouse"; server: Server; proxy: SilentProxy };

export type Stage = {
  places: readonly Place[];
  /** host:port, by the proxy. */
  bootstrap: string;
  amqp: string;
  /** As it is, for whoever looks at the end. */
  clickhouse: { direct: string; url: string } | undefined;
  createTopic: Kafka["createTopic"];
  close(): Promise<void>;
};

/** Undefined where Kafka or RabbitMQ cannot be had; ClickHouse may be left out. */
export async function openStage(): Promise<Stage | undefined> {
  let port = 0;
  const byKafka = await openSilentProxy(() => port);
  const [kafka, rabbitmq, clickhouse] = await Promise.all([
    startKafka({ advertised: byKafka.port }),
    startRabbitMQ(),
    startClickHouse(),
  ]);
  const close = async () => {
    await Promise.all([kafka?.stop(), rabbitmq?.stop(), clickhouse?.stop()]);
    await Promise.all([...new Set([byKafka, ...places.map(({ proxy }) => proxy)])].map((proxy) => proxy.close()));
  };
  const places: Place[] = [];
  if (!kafka || !rabbitmq) {
    await close();
    return undefined;
  }
  port = Number(kafka.bootstrap.split(":")[1]);
  places.push({ name: "kafka", server: kafka, proxy: byKafka });
  const byRabbit = await openSilentProxy(portOf(rabbitmq.url));
  places.push({ name: "rabbitmq", server: rabbitmq, proxy: byRabbit });
  const byClickHouse = clickhouse && (await openSilentProxy(portOf(clickhouse.url)));
  if (clickhouse && byClickHouse) places.push({ name: "clickhouse", server: clickhouse, proxy: byClickHouse });
  return {
    places,
    bootstrap: `127.0.0.1:${byKafka.port}`,
    amqp: through(rabbitmq.url, byRabbit),
    clickhouse: clickhouse && byClickHouse && { direct: clickhouse.url, url: through(clickhouse.url, byClickHouse) },
    createTopic: kafka.createTopic,
    close,
  };
}

const portOf = (url: string): number => Number(/:(\d+)\/?$/.exec(url)?.[1]);
const through = (url: string, { port }: SilentProxy): string => url.replace(/:\d+\/?$/, `:${port}`);
