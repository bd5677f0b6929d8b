// How Kafka is reached, by its source and its sink: the package, loaded when a setting asks for it, and its options from our settings.

import { isIP } from "node:net";
import type { Base, BaseOptions } from "@platformatic/kafka";
import type { Brokers } from "./broker-settings.ts";
import { optional, UnmetNeed } from "./optional.ts";

export type KafkaPackage = typeof import("@platformatic/kafka");

const PACKAGE = "@platformatic/kafka";
const CONNECT_MS = 10_000;

/** `what` needs it. Older versions of Node have a release of the package that lacks too much. */
export async function loadKafka(what: string, node = process.versions.node): Promise<KafkaPackage> {
  if (!isNewEnough(node)) throw new UnmetNeed(`${what} needs Node 22.22, or 24.6 and newer: this is ${node}`);
  return optional(what, PACKAGE, () => import("@platformatic/kafka"));
}

function isNewEnough(node: string): boolean {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  return major > 24 || (major === 24 && minor >= 6) || (major === 22 && minor >= 22);
}

/** `name` is who it is for the broker, where the settings do not say. */
export function clientOptions(
  { brokers, clientId, tls, sasl }: Brokers,
  name: string,
): BaseOptions & { bootstrapBrokers: string[] } {
  const hosts = brokers.map((broker) => broker.slice(0, broker.lastIndexOf(":")).replace(/^\[|\]$/g, ""));
  return {
    clientId: clientId ?? name,
    bootstrapBrokers: [...brokers],
    connectTimeout: CONNECT_MS,
    autocreateTopics: false,
    ...(tls !== undefined && tls !== false && { tls: tls === true ? {} : tls }),
    // For those who find the broker behind one address by its name; an address has none.
    tlsServerName: hosts.every((host) => isIP(host) === 0),
    ...(sasl && { sasl }),
  };
}

/** An error of a connection is heard by whoever uses it; of one that is told twice, the second would end the process. */
export function hearErrors(client: Base): void {
  client.connections.on("connecting", ({ connection }) => {
    connection.on("error", () => undefined);
  });
}

/** At once: what was not written yet never is. Resolves when the connections are closed; never rejects. */
export async function cut(client: Base): Promise<void> {
  const sockets = [...client.connections].map(([, connection]) => connection.socket);
  const closed = client.close().catch(() => undefined);
  for (const socket of sockets) socket?.destroy();
  await closed;
}
