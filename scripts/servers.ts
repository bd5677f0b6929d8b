// node scripts/servers.ts kafka|rabbitmq|clickhouse|redis|elasticmq|all: the servers that the tests use, for a developer, until Ctrl-C.
// They are installed if need be, and nothing of their data is kept.

import { NO_CLICKHOUSE, startClickHouse } from "../test/support/servers/clickhouse.ts";
import { NO_ELASTICMQ, startElasticMQ } from "../test/support/servers/elasticmq.ts";
import { NO_KAFKA, startKafka } from "../test/support/servers/kafka.ts";
import { NO_RABBITMQ, startRabbitMQ } from "../test/support/servers/rabbitmq.ts";
import { NO_REDIS, startRedis } from "../test/support/servers/redis.ts";
import type { Server } from "../test/support/servers/server.ts";

type Started = { server: Server; address: string } | string;

const SERVERS: { [name: string]: () => Promise<Started> } = {
  async kafka() {
    const server = await startKafka({ settings: { "auto.create.topics.enable": "true" } });
    return server ? { server, address: server.bootstrap } : NO_KAFKA;
  },
  async rabbitmq() {
    const server = await startRabbitMQ();
    return server ? { server, address: server.url } : NO_RABBITMQ;
  },
  async clickhouse() {
    const server = await startClickHouse();
    return server ? { server, address: server.url } : NO_CLICKHOUSE;
  },
  async redis() {
    const server = await startRedis();
    return server ? { server, address: server.url } : NO_REDIS;
  },
  async elasticmq() {
    const server = await startElasticMQ();
    return server ? { server, address: server.endpoint } : NO_ELASTICMQ;
  },
};

const [asked = ""] = process.argv.slice(2);
const names = asked === "all" ? Object.keys(SERVERS) : [asked];
for (const name of names) {
  const start = SERVERS[name];
  if (start === undefined) {
    console.error(`usage: node scripts/servers.ts ${Object.keys(SERVERS).join("|")}|all`);
    process.exit(2);
  }
  const started = await start();
  if (typeof started === "string") {
    console.error(`${name}: ${started}`);
    process.exitCode = 1;
  } else console.log(`${name}: ${started.address} (process ${started.server.pid()})`);
}

if (process.exitCode === undefined) {
  console.log("Ctrl-C stops and removes them");
  setInterval(() => undefined, 2 ** 31 - 1);
}
