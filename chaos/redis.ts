// The Redis of a run, and what may happen to it. It keeps nothing but what it is told to save: killed, it comes back empty or with what it knew then.

import { setTimeout as sleep } from "node:timers/promises";
import { NO_REDIS, type RedisServer, startRedis, tell } from "../test/support/servers/redis.ts";
import type { Fault } from "./history.ts";

export const REDIS_CARDS = [
  "kill redis",
  "save redis",
  "kill redis",
  "empty redis",
  "cut redis",
  "freeze redis",
  "move the queue",
  "move the queue",
] as const;
export type RedisCard = (typeof REDIS_CARDS)[number];

export async function openRedisServer(): Promise<RedisServer> {
  const server = await startRedis();
  if (!server) throw new Error(NO_REDIS);
  return server;
}

export type RedisCardOptions = {
  server: RedisServer;
  random: () => number;
  over: AbortSignal;
  onFault: (fault: Fault) => void;
  /** Of an administrator. */
  ask: (method: string, path: string, body?: object) => Promise<{ status: number; body: { [name: string]: unknown } }>;
};

export function createRedisCards({ server, random, over, onFault, ask }: RedisCardOptions): {
  [card in RedisCard]: () => Promise<void>;
} {
  let isTaken = false;
  const between = (least: number, most: number) => least + random() * (most - least);
  const wait = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => undefined);
  const noted = async (kind: string, act: () => Promise<unknown>): Promise<void> => {
    if (isTaken) return;
    isTaken = true;
    const at = Date.now();
    try {
      await act();
    } finally {
      isTaken = false;
    }
    onFault({ kind, at, until: Date.now() });
  };

  return {
    "kill redis": () =>
      noted("kill redis", async () => {
        await server.kill();
        await wait(between(100, 2_000));
        await server.restart();
      }),
    "save redis": () => noted("save redis", () => tell(server.port, "SAVE")),
    "empty redis": () => noted("empty redis", () => tell(server.port, "FLUSHALL")),
    "cut redis": () => noted("cut redis", () => tell(server.port, "CLIENT KILL TYPE normal")),
    "freeze redis": () =>
      noted("freeze redis", async () => {
        process.kill(server.pid(), "SIGSTOP");
        await wait(between(500, 4_000));
        process.kill(server.pid(), "SIGCONT");
      }),
    async "move the queue"() {
      const asked = async (method: string, path: string, body?: object) =>
        ask(method, path, body).catch(() => ({ status: 0, body: {} as { [name: string]: unknown } }));
      const { body: queue } = await asked("GET", "/v1/queue");
      if (queue.migration) {
        const { status } = random() < 0.5 ? await asked("DELETE", "/v1/queue/migration") : { status: 0 };
        if (status === 202) onFault({ kind: "abort move", at: Date.now() });
        return;
      }
      const to = queue.engine === "redis" ? "postgres" : "redis";
      const strategy = random() < 0.25 ? "drain-first" : "live-forward";
      const { status } = await asked("POST", "/v1/queue/migration", { to, strategy });
      if (status === 202) onFault({ kind: `move to ${to}`, at: Date.now() });
    },
  };
}
