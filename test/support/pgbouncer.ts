// A real PgBouncer in front of a test's database, on a Unix socket.

import { spawn } from "node:child_process";
import { chmod, chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { parse } from "pg-connection-string";
import { debianProgram } from "./debian.ts";
import type { Ends } from "./in-reverse.ts";
import { until } from "./until.ts";

export const pgbouncer = debianProgram("pgbouncer", "/usr/sbin/pgbouncer");

/** It refuses to run as root, and must enter the server's own directory. */
const NOBODY = 65_534;

/** The URL of the same database through the pooler. */
export async function pooled(t: Ends, url: string, mode: "session" | "transaction"): Promise<string> {
  const { host, port, user, password, database } = parse(url);
  const directory = await mkdtemp(join(tmpdir(), "carillon-test-pooler-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const settings = join(directory, "pgbouncer.ini");
  await writeFile(
    settings,
    `[databases]
${database} = host=${host} port=${port} user=${user} password=${password}
[pgbouncer]
pool_mode = ${mode}
auth_type = any
listen_port = 6432
unix_socket_dir = ${directory}
default_pool_size = 40
max_client_conn = 200
logfile = ${join(directory, "log")}
`,
  );
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    await chown(directory, NOBODY, NOBODY);
    await chown(settings, NOBODY, NOBODY);
  }
  await chmod(directory, 0o755);
  const child = spawn(pgbouncer ?? "", [settings], { stdio: "ignore", ...(isRoot && { uid: NOBODY, gid: NOBODY }) });
  const ended = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  t.after(async () => {
    process.off("exit", end);
    end();
    await ended;
  });
  const through = `postgres://${user}@/${database}?host=${encodeURIComponent(directory)}&port=6432`;
  await until(async () => {
    const client = new pg.Client({ connectionString: through });
    client.on("error", () => undefined);
    return client.connect().then(
      () => client.end().then(() => true),
      () => undefined,
    );
  });
  return through;
}
