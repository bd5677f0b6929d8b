// What the figures were measured on and with.

import { readFileSync } from "node:fs";
import os from "node:os";
import { Redis } from "ioredis";
import { runSql } from "./sql.ts";

const PEERS = ["bullmq", "graphile-worker", "ioredis", "pg", "pg-boss"] as const;

export const machine = () => ({
  cores: os.availableParallelism(),
  cpu: os.cpus()[0]?.model ?? "unknown",
  memoryGiB: Math.round(os.totalmem() / 2 ** 30),
  kernel: `${os.type()} ${os.release()} ${os.arch()}`,
});

export async function versions(databaseUrl: string, redisUrl: string | undefined) {
  const [row] = await runSql<{ server_version: string }>(databaseUrl, "show server_version");
  return {
    carillon: versionIn("../package.json"),
    node: process.version,
    postgresql: row?.server_version,
    redis: redisUrl && (await redisVersion(redisUrl)),
    fastify: versionIn("../node_modules/fastify/package.json"),
    ...Object.fromEntries(PEERS.map((name) => [name, versionIn(`node_modules/${name}/package.json`)])),
  };
}

function versionIn(path: string): string {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")).version;
}

async function redisVersion(url: string): Promise<string | undefined> {
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  try {
    return /redis_version:(\S+)/.exec(await redis.info("server"))?.[1];
  } finally {
    redis.disconnect();
  }
}
