// How Kafka is run: from the jars that Maven brought, as broker and controller in one.
//
// What a start would do each time is done once and kept: the formatted directory, and an archive of the classes as the
// machine has them after a start. On two busy cores it was ready in 2.6, 5.2 and 5.7 s with
// the archive, in 5.3, 5.5 and 15.6 s without.

import { join } from "node:path";
import { CACHE, type Command } from "./server.ts";

export const VERSION = "4.3.1";
export const JAVA = "/usr/bin/java";

const installed = join(CACHE, `kafka-${VERSION}`);
/** Made in this order; whoever finds the last has all of them. */
export const INSTALLED = {
  directory: installed,
  jars: join(installed, "lib"),
  formatted: join(installed, "formatted"),
  archive: join(installed, "classes.jsa"),
};

export type Ports = { client: number; internal: number; controller: number };
export type Settings = { [name: string]: string | number };

/** A small machine will do: Kafka's defaults are for a large one. */
export function javaCommand(more: string[]): Command {
  const memory = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"];
  return { program: JAVA, args: [...memory, ...more], env: { CLASSPATH: join(INSTALLED.jars, "*") } };
}

export function properties(data: string, ports: Ports, more: Settings = {}): string {
  const settings: Settings = {
    "process.roles": "broker,controller",
    "node.id": 1,
    listeners: `CLIENT://127.0.0.1:${ports.client},INTERNAL://127.0.0.1:${ports.internal},CONTROLLER://127.0.0.1:${ports.controller}`,
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "controller.quorum.voters": `1@127.0.0.1:${ports.controller}`,
    "log.dirs": data,
    // A topic that a test misspells shall not come about.
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    // After a kill -9 the controller waits until the broker that was there would have been heard: 9 s by default.
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 1_000,
    // Half of the memory, by default.
    "log.cleaner.dedupe.buffer.size": 16_777_216,
    ...more,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

export const hasStarted = (said: () => string) => said().includes("Kafka Server started");
