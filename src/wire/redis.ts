// How Redis, or what speaks like it, is reached: the package, loaded when a setting asks for it; scripts; and keys that are ours alone.
//
// A command that cannot be sent now fails now, and one whose answer was lost is never sent again by itself: whoever asked decides.

import { createHash } from "node:crypto";
import type { Redis as Client, Cluster } from "ioredis";
import { optional } from "./optional.ts";

export type RedisSettings = { url: string; prefix: string };

export type Script = { readonly text: string; readonly sha: string };

export type Redis = {
  /** The key's whole name. All of them are in one slot of a cluster. */
  key(name: string): string;
  /** Atomically. Rejects where it is away; the script may have run then. */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** Who answers, and what it does with keys when its memory is full. */
  standing(): Promise<RedisStanding>;
  close(): Promise<void>;
};

export type RedisStanding = { version: string; evicts: string | undefined };

export type Watch = { away(error: unknown): void; back(): void };

const PACKAGE = "ioredis";
const CONNECT_MS = 5_000;
/** A server that says nothing for so long is away. */
const SILENT_MS = 2_000;
const LONGEST_RETRY_MS = 2_000;
const PORT = 6379;
const SENTINEL_PORT = 26379;

const LOGIN = "(?:[^\\s@/]*@)?";
const HOST = "(?:[\\w.-]+|\\[[\\da-fA-F:.]+\\])(?::\\d{1,5})?";
const HOSTS = `${HOST}(?:,${HOST})*`;
/** `redis://`, `rediss://` with TLS and a number of a database; `+cluster` and `+sentinel` have several hosts, and the latter the master's name as path. */
export const REDIS_URL = new RegExp(
  `^rediss?(?:://${LOGIN}${HOST}(?:/\\d*)?|\\+cluster://${LOGIN}${HOSTS}/?|\\+sentinel://${LOGIN}${HOSTS}/[\\w.-]+)$`,
);

export function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** `what` needs it. */
export const loadRedis = (what: string) => optional(what, PACKAGE, () => import("ioredis"));

export async function openRedis({ url, prefix }: RedisSettings, what: string, watch: Watch): Promise<Redis> {
  const client = clientFor(await loadRedis(what), url);
  let isClosed = false;
  client.on("error", watch.away);
  client.on("close", () => {
    if (!isClosed) watch.away(new Error("the connection was closed"));
  });
  client.on("ready", watch.back);
  return {
    key: (name) => `{${prefix}}:${name}`,
    async run({ text, sha }, keys, args) {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
        return client.eval(text, keys.length, ...keys, ...args);
      }
    },
    async standing() {
      const about = `${await client.info("server")}${await client.info("memory")}`;
      const said = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(about)?.[1];
      const valkey = said("valkey_version");
      const policy = said("maxmemory_policy");
      return {
        version: valkey ? `Valkey ${valkey}` : `Redis ${said("redis_version")}`,
        evicts: said("maxmemory") === "0" || policy === "noeviction" ? undefined : policy,
      };
    },
    async close() {
      isClosed = true;
      client.disconnect();
    },
  };
}

/** By hand, as a URL has one host. */
function clientFor({ Redis, Cluster }: Awaited<ReturnType<typeof loadRedis>>, url: string): Client | Cluster {
  const [, scheme = "", rest = ""] = /^(\w+(?:\+\w+)?):\/\/(.*)$/.exec(url) ?? [];
  const at = rest.lastIndexOf("@");
  const [username = "", password = ""] = at < 0 ? [] : splitAt(rest.slice(0, at), ":");
  const [hosts, path] = splitAt(rest.slice(at + 1), "/");
  const isSentinel = scheme.endsWith("+sentinel");
  const servers = hosts.split(",").map((host) => hostOf(host, isSentinel ? SENTINEL_PORT : PORT));
  const options = {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(scheme.startsWith("rediss") && { tls: {} }),
    connectTimeout: CONNECT_MS,
    commandTimeout: SILENT_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times: number) => Math.min(LONGEST_RETRY_MS, 50 * 2 ** Math.min(times, 10)),
  };
  if (scheme.endsWith("+cluster")) return new Cluster(servers, { redisOptions: options, enableOfflineQueue: false });
  if (isSentinel) return new Redis({ ...options, sentinels: servers, name: path });
  return new Redis({ ...options, ...servers[0], ...(path && { db: Number(path) }) });
}

function splitAt(text: string, sign: string): [string, string] {
  const at = text.indexOf(sign);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function hostOf(text: string, fallback: number): { host: string; port: number } {
  const [, six, host = six ?? text, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  return { host, port: port ? Number(port) : fallback };
}
