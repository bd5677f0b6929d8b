// A real Redis, from Debian: 7.0, or TEST_REDIS_SERVER, the program of another; alone, as a cluster of one, or watched by a sentinel.

import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { debianProgram } from "../debian.ts";
import { freePort, type Server, serve, serverHome } from "./server.ts";

export const NO_REDIS = "there is no Redis, and it cannot be installed here";

export type RedisServer = Server & { url: string; port: number };
export type RedisOptions = {
  /** What it has written is there after kill -9. */
  isKept?: boolean;
  isCluster?: boolean;
  password?: string;
  more?: { [setting: string]: string };
};

const SLOTS = 16_384;

const redisProgram = (): string | undefined =>
  process.env.TEST_REDIS_SERVER ?? debianProgram("redis-server", "/usr/bin/redis-server");

/** Undefined where it cannot be had. Ready at once, with about 10 MB. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer | undefined> {
  const { isKept = false, isCluster = false, password, more = {} } = options;
  const program = redisProgram();
  if (program === undefined) return undefined;
  const home = await serverHome("redis");
  const port = await freePort();
  const settings = {
    bind: "127.0.0.1",
    port: String(port),
    dir: home,
    save: '""',
    appendonly: isKept ? "yes" : "no",
    appendfsync: "always",
    ...(isCluster && { "cluster-enabled": "yes", "cluster-announce-ip": "127.0.0.1" }),
    ...(password && { requirepass: password }),
    ...more,
  };
  const server = await start(program, home, settings, []);
  // Before 7.0 one by one; a line of all would be too long.
  for (let from = 0; isCluster && from < SLOTS; from += SLOTS / 4)
    await tell(port, `CLUSTER ADDSLOTS ${Array.from({ length: SLOTS / 4 }, (_, n) => from + n).join(" ")}`);
  const login = password ? `:${encodeURIComponent(password)}@` : "";
  return { ...server, port, url: `redis${isCluster ? "+cluster" : ""}://${login}127.0.0.1:${port}` };
}

/** Of one master, whose name is "bells". */
export async function startSentinel(master: number): Promise<RedisServer | undefined> {
  const program = redisProgram();
  if (program === undefined) return undefined;
  const home = await serverHome("sentinel");
  const port = await freePort();
  const settings = {
    bind: "127.0.0.1",
    port: String(port),
    dir: home,
    "sentinel monitor": `bells 127.0.0.1 ${master} 1`,
    "sentinel down-after-milliseconds": "bells 5000",
    "sentinel failover-timeout": "bells 10000",
  };
  const server = await start(program, home, settings, ["--sentinel"]);
  return { ...server, port, url: `redis+sentinel://127.0.0.1:${port}/bells` };
}

/** Says one command, and answers with what comes back. */
export async function tell(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(`${command}\r\n`));
    socket.once("data", (answer) => {
      socket.destroy();
      resolve(answer.toString());
    });
    socket.once("error", reject);
  });
}

async function start(
  program: string,
  home: string,
  settings: { [name: string]: string },
  flags: string[],
): Promise<Server> {
  const config = join(home, "redis.conf");
  await writeFile(
    config,
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(""),
  );
  const isReady = () =>
    tell(Number(settings.port), "PING").then(
      (answer) => answer.startsWith("+PONG") || answer.startsWith("-NOAUTH"),
      () => false,
    );
  return serve(home, { program, args: [config, ...flags] }, isReady);
}
