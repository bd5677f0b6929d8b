// The Redis that BullMQ uses: BENCH_REDIS_URL, else redis-server on the PATH, which is installed from
// Debian's packages first when it is missing and we may do so.
//
// appendonly with an fsync every second is what BullMQ's documentation asks for in production. It may
// lose a second of jobs where PostgreSQL loses none; that favours BullMQ, and we leave it the favour.
//
// BullMQ's delayed jobs wait for a command of Redis to time out, which Redis looks for hz times a second. With its default of
// 10 they are late by up to 100 ms; 100 is the most that its documentation advises.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Server } from "./postgres-server.ts";
import { freePort, startProgram, temporaryDirectory, whenReady } from "./program.ts";

const run = promisify(execFile);

/** Undefined when there is none to be had; says so. */
export async function startRedis(givenUrl: string | undefined): Promise<Server | undefined> {
  if (givenUrl) return { url: givenUrl, origin: "BENCH_REDIS_URL", settings: "not ours" };
  const reason = await install();
  if (reason !== undefined) {
    console.error(`\n*** BullMQ IS LEFT OUT: no redis-server (${reason}); install it or set BENCH_REDIS_URL ***\n`);
    return undefined;
  }
  const directory = await temporaryDirectory("redis");
  const port = await freePort();
  const settings = {
    bind: "127.0.0.1",
    port,
    dir: directory,
    appendonly: "yes",
    appendfsync: "everysec",
    save: "",
    hz: 100,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = await startProgram("redis-server", args, { cwd: directory, stdio: ["ignore", "pipe", "inherit"] });
  const isReady = new Promise<void>((resolve) => {
    server.child.stdout?.on("data", (text: Buffer) => text.includes("Ready to accept connections") && resolve());
  });
  await whenReady(server, "Redis", isReady);
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: server.pid,
    origin: "redis-server",
    settings: "appendonly yes, appendfsync everysec, hz 100",
  };
}

/** Resolves with the reason why there is no redis-server. */
async function install(): Promise<string | undefined> {
  const problem = () =>
    run("redis-server", ["--version"]).then(
      () => undefined,
      (error: Error) => error.message,
    );
  if (process.getuid?.() !== 0 || (await problem()) === undefined) return problem();
  console.error("installing redis-server with apt-get");
  // Run level 1 keeps Debian from starting a server of its own on the default port.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const wait = ["-o", "DPkg::Lock::Timeout=120"];
  try {
    await run("apt-get", [...wait, "update"], { env });
    await run("apt-get", [...wait, "install", "-y", "--no-install-recommends", "redis-server"], { env });
  } catch (error) {
    return error instanceof Error ? (error.message.split("\n")[0] ?? error.message) : String(error);
  }
  return problem();
}
