// ElasticMQ, from Maven: another server that speaks like SQS, with its own idea of it.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { debianProgram } from "../debian.ts";
import { JAVA } from "./kafka-program.ts";
import { CACHE, freePort, type Server, serve, serverHome } from "./server.ts";

export const NO_ELASTICMQ = "there is no ElasticMQ, and it cannot be installed here";
const VERSION = "1.7.1";
const JARS = join(CACHE, `elasticmq-${VERSION}`, "lib");

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>carillon.test</groupId>
  <artifactId>elasticmq</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.elasticmq</groupId><artifactId>elasticmq-server_2.13</artifactId><version>${VERSION}</version></dependency>
  </dependencies>
</project>
`;

export type ElasticMQ = Server & { endpoint: string };

/** Undefined where it cannot be had. Ready in 3 to 6 s; 150 MB. */
export async function startElasticMQ(): Promise<ElasticMQ | undefined> {
  if (!(await isInstalled())) return undefined;
  const home = await serverHome("elasticmq");
  const port = await freePort();
  const file = join(home, "elasticmq.conf");
  const address = `{ protocol = http, host = "127.0.0.1", port = ${port}, context-path = "" }`;
  await writeFile(
    file,
    `include classpath("application.conf")
node-address = ${address}
rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "127.0.0.1", sqs-limits = strict }
rest-stats { enabled = false }
`,
  );
  const memory = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"];
  const args = [...memory, `-Dconfig.file=${file}`, "org.elasticmq.server.Main"];
  const command = { program: JAVA, args, env: { CLASSPATH: join(JARS, "*") } };
  const endpoint = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(endpoint).then(
      () => true,
      () => false,
    );
  return { ...(await serve(home, command, isReady)), endpoint };
}

/** One of several that ask at once installs it, the others wait for that. */
async function isInstalled(): Promise<boolean> {
  if (debianProgram("default-jre-headless", JAVA) === undefined) return false;
  if (existsSync(JARS)) return true;
  if (debianProgram("maven", "/usr/bin/mvn") === undefined) return false;
  process.stderr.write(`tests: bringing ElasticMQ ${VERSION} by Maven into ${JARS}\n`);
  const directory = await serverHome("elasticmq-install");
  try {
    await writeFile(join(directory, "pom.xml"), POM);
    const lib = join(directory, "lib");
    const goal = [
      "-q",
      "-B",
      "-U",
      "dependency:copy-dependencies",
      "-DincludeScope=runtime",
      `-DoutputDirectory=${lib}`,
    ];
    await promisify(execFile)("mvn", goal, { cwd: directory });
    await mkdir(join(JARS, ".."), { recursive: true });
    // Who was quicker has brought the same.
    await rename(lib, JARS).catch(() => undefined);
  } catch (error) {
    process.stderr.write(`tests: ElasticMQ could not be installed: ${String(error).split("\n", 5).join("\n")}\n`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return existsSync(JARS);
}
