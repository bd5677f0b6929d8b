// The Redis of a run. It keeps nothing but what it is told to save: killed, it comes back empty or with what it knew then.

import { NO_REDIS, startRedis, tell } from "../test/support/servers/redis.ts";
import type { EngineServer } from "./engine.ts";

export async function openRedisServer(): Promise<EngineServer> {
  const server = await startRedis();
  if (!server) throw new Error(NO_REDIS);
  return {
    name: "redis",
    env: { CARILLON_REDIS_URL: server.url },
    deck: [
      ...(["kill redis", "save redis", "kill redis", "empty redis", "cut redis", "freeze redis"] as const),
      ...(["move the queue", "move the queue"] as const),
    ],
    dues: ["kill redis", "empty redis", "move the queue"],
    acts: {
      async "kill redis"({ wait, between }) {
        await server.kill();
        await wait(between(100, 2_000));
        await server.restart();
      },
      "save redis": () => tell(server.port, "SAVE"),
      "empty redis": () => tell(server.port, "FLUSHALL"),
      "cut redis": () => tell(server.port, "CLIENT KILL TYPE normal"),
      async "freeze redis"({ wait, between }) {
        process.kill(server.pid(), "SIGSTOP");
        await wait(between(500, 4_000));
        process.kill(server.pid(), "SIGCONT");
      },
    },
    stop: server.stop,
  };
}
