// Brings Kafka by Maven and prepares quick starts of it. Runs as a process of its own that holds a lock (see kafka.ts), so
// that of several test files one installs it and the others find it.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../until.ts";
import { hasStarted, INSTALLED, javaCommand, properties, VERSION } from "./kafka-program.ts";
import { begin, end, freePort, serverHome } from "./server.ts";

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>carillon.test</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
`;

if (!existsSync(INSTALLED.archive)) {
  rmSync(INSTALLED.directory, { recursive: true, force: true });
  mkdirSync(INSTALLED.directory, { recursive: true });
  bringJars();
  format();
  await archiveClasses();
}

function bringJars(): void {
  writeFileSync(join(INSTALLED.directory, "pom.xml"), POM);
  const args = [
    "-q",
    "-B",
    // What could not be had an hour ago is asked for again.
    "-U",
    "dependency:copy-dependencies",
    "-DincludeScope=runtime",
    `-DoutputDirectory=${INSTALLED.jars}`,
  ];
  execFileSync("mvn", args, { cwd: INSTALLED.directory, stdio: ["ignore", 2, 2] });
}

function format(): void {
  const settings = join(INSTALLED.directory, "format.properties");
  writeFileSync(settings, properties(INSTALLED.formatted, { client: 1, internal: 2, controller: 3 }));
  const { program, args, env } = javaCommand([
    "kafka.tools.StorageTool",
    "format",
    "-t",
    "carillon-test-kafka-00",
    "-c",
    settings,
  ]);
  execFileSync(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", 2] });
}

/** Java writes the archive when it ends. A broken one must not be found, hence the renaming. */
async function archiveClasses(): Promise<void> {
  const home = await serverHome("kafka-install");
  try {
    const data = join(home, "data");
    const settings = join(home, "server.properties");
    const log = join(home, "log");
    const ports = { client: await freePort(), internal: await freePort(), controller: await freePort() };
    cpSync(INSTALLED.formatted, data, { recursive: true });
    writeFileSync(settings, properties(data, ports));
    const written = `${INSTALLED.archive}.new`;
    const kafka = begin(javaCommand([`-XX:ArchiveClassesAtExit=${written}`, "kafka.Kafka", settings]), log);
    await until(async () => hasStarted(() => readFileSync(log, "utf8")) || undefined, 180_000);
    await end(kafka, "SIGTERM");
    renameSync(written, INSTALLED.archive);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
