// A real Kafka, from Maven: one broker, with a listener for clients that is plain, or TLS with SASL/PLAIN.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Admin } from "@platformatic/kafka";
import { CERTIFICATE, PRIVATE_KEY } from "../certificate.ts";
import { debianProgram } from "../debian.ts";
import { hasStarted, INSTALLED, JAVA, javaCommand, properties, type Settings, VERSION } from "./kafka-program.ts";
import { CACHE, freePort, type Server, serve, serverHome } from "./server.ts";

export const NO_KAFKA = "there is no Kafka, and it cannot be installed here";

/** Of a secured Kafka; its certificate is that of certificate.ts. */
export const KAFKA_USER = { username: "carillon", password: "a-word-for-tests" };

export type Kafka = Server & {
  /** host:port */
  bootstrap: string;
  createTopic(name: string, partitions?: number, settings?: Settings): Promise<void>;
};

export type KafkaOptions = {
  /** TLS and SASL/PLAIN instead of neither. */
  secured?: boolean;
  /** Clients are told to come by this port, which leads to its own: a proxy's. */
  advertised?: number;
  /** More of server.properties. */
  settings?: Settings;
};

/** Undefined where it cannot be had. Ready in 3 to 6 s on two busy cores, 6 to 9 s after a kill -9; 180 to 300 MB. */
export async function startKafka(options: KafkaOptions = {}): Promise<Kafka | undefined> {
  const { secured = false, advertised, settings = {} } = options;
  if (!(await isInstalled())) return undefined;
  const home = await serverHome("kafka");
  const data = join(home, "data");
  const ports = { client: await freePort(), internal: await freePort(), controller: await freePort() };
  const file = join(home, "server.properties");
  await cp(INSTALLED.formatted, data, { recursive: true });
  const listeners =
    advertised === undefined
      ? {}
      : { "advertised.listeners": `CLIENT://127.0.0.1:${advertised},INTERNAL://127.0.0.1:${ports.internal}` };
  await writeFile(file, properties(data, ports, { ...(secured && (await security(home))), ...listeners, ...settings }));
  const command = javaCommand([`-XX:SharedArchiveFile=${INSTALLED.archive}`, "kafka.Kafka", file]);
  return {
    ...(await serve(home, command, hasStarted)),
    bootstrap: `127.0.0.1:${ports.client}`,
    createTopic: (name, partitions = 1, more = {}) => createTopic(ports.internal, name, partitions, more),
  };
}

/** One of several that ask at once installs it, the others wait for that. */
async function isInstalled(): Promise<boolean> {
  if (debianProgram("default-jre-headless", JAVA) === undefined) return false;
  if (existsSync(INSTALLED.archive)) return true;
  if (debianProgram("maven", "/usr/bin/mvn") === undefined) return false;
  process.stderr.write(`tests: bringing Kafka ${VERSION} by Maven into ${INSTALLED.directory}\n`);
  await mkdir(CACHE, { recursive: true });
  const install = [process.execPath, join(import.meta.dirname, "kafka-install.ts")];
  try {
    await promisify(execFile)("flock", [join(CACHE, "kafka.lock"), ...install]);
  } catch (error) {
    process.stderr.write(`tests: Kafka could not be installed: ${String(error).split("\n", 5).join("\n")}\n`);
  }
  return existsSync(INSTALLED.archive);
}

async function security(home: string): Promise<Settings> {
  const keystore = join(home, "keystore.pem");
  await writeFile(keystore, PRIVATE_KEY + CERTIFICATE, { mode: 0o600 });
  const { username, password } = KAFKA_USER;
  const login = "org.apache.kafka.common.security.plain.PlainLoginModule";
  return {
    "listener.security.protocol.map": "CLIENT:SASL_SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": keystore,
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": `${login} required user_${username}="${password}";`,
  };
}

/** By the broker's own listener, which is never secured. */
async function createTopic(port: number, name: string, partitions: number, settings: Settings): Promise<void> {
  const admin = new Admin({ clientId: "carillon-test", bootstrapBrokers: [`127.0.0.1:${port}`] });
  try {
    const configs = Object.entries(settings).map(([key, value]) => ({ name: key, value: `${value}` }));
    await admin.createTopics({ topics: [name], partitions, replicas: 1, configs });
  } finally {
    await admin.close();
  }
}
