// A whole Carillon moves its ready work to Redis and back, by HTTP and by the command line, and people see where it waits.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { NO_REDIS, startRedis } from "../support/servers/redis.ts";
import { ask, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const CLI = new URL("../../src/cli/carillon.ts", import.meta.url).pathname;

test("ready work goes to Redis and back while it is sent, and each attempt says where it was claimed from", async (t) => {
  const redis = await startRedis();
  if (!redis) return t.skip(NO_REDIS);
  t.after(redis.stop);
  const roles = ["api", "worker", "scheduler", "keeper"] as const;
  const service = await startService({ roles: [...roles], redisUrl: redis.url, redisPrefix: "moves" });
  t.after(service.stop);
  const send = async () => {
    const { body } = await service.ask("POST", "/v1/notifications", { channel: "console", content: { body: "b" } });
    return body.notificationId as string;
  };
  const sent = (id: string) =>
    until(async () => {
      const found = await ask(service, `/v1/notifications/${id}`);
      return found.status === "sent" ? found : undefined;
    });
  const move = (to: string) => service.ask("POST", "/v1/queue/migration", { to });
  const ended = (state: string) =>
    until(async () => {
      const move = await ask(service, "/v1/queue/migration");
      return move.state === state ? move : undefined;
    });

  assert.equal((await service.ask("GET", "/v1/queue/migration")).status, 404);
  assert.equal((await service.ask("DELETE", "/v1/queue/migration")).body.code, "MOVE_REFUSED");
  assert.equal((await move("postgres")).body.code, "MOVE_REFUSED");
  assert.match((await move("sqs")).body.detail, /1 of 1 workers cannot take from sqs/);
  assert.equal((await move("nowhere")).status, 422);
  const first = await sent(await send());
  assert.equal(first.attempts[0].engine, undefined, "PostgreSQL goes without saying");

  assert.equal((await move("redis")).status, 202);
  await ended("done");
  const queue = await ask(service, "/v1/queue");
  assert.equal(queue.engine, "redis");
  assert.deepEqual(
    queue.engines.map(({ name, current }: { name: string; current: boolean }) => [name, current]),
    [
      ["postgres", false],
      ["redis", true],
    ],
  );
  assert.equal((await sent(await send())).attempts[0].engine, "redis");
  assert.deepEqual((await ask(service, "/v1/workers")).data[0].engines, ["redis"]);

  await redis.kill();
  const waiting = await send();
  const env = { ...process.env, CARILLON_URL: service.url, CARILLON_API_KEY: service.key };
  const { stdout } = await run(process.execPath, [CLI, "queue", "migrate", "--to", "postgres"], { env });
  assert.match(stdout, /what is ready waits in postgres: of \d+ in redis, \d+ were moved.*audited, it balances/);
  const { audit } = await ask(service, "/v1/queue/migration");
  assert.deepEqual([audit.state, audit.isWhole, audit.amiss], ["balanced", true, 0]);
  for (const { accepted, ended, waiting } of audit.engines) assert.equal(accepted, ended + waiting);
  await sent(waiting);
  const { data } = await ask(service, "/v1/audit");
  const moves = data.filter(({ action }: { action: string }) => action === "queue.move");
  assert.equal(moves.length, 2);
});
