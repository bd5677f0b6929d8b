// A whole Carillon whose limits are in Redis: what is under one waits for it, the rest goes on, and people see both.

import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveLimits } from "#config/limits.ts";
import { NO_REDIS, startRedis } from "../../support/servers/redis.ts";
import { ask, email, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

test("limits hold in Redis; while it is away what is under one waits and spends nothing, and everything else is sent", async (t) => {
  const redis = await startRedis({ isKept: true });
  if (!redis) return t.skip(NO_REDIS);
  t.after(redis.stop);
  const given = { providers: { dev: { account: [{ per: "hour", most: 4, burst: 2 }] } } };
  const { limits } = resolveLimits(given, { dev: { type: "dev" } });
  const settings = { limits, limitsIn: "redis" as const, redisUrl: redis.url, redisPrefix: "a-test" };
  const service = await startService({ roles: ["api", "worker", "scheduler"], ...settings });
  t.after(service.stop);
  const send = async (body: object) => {
    const { status, body: answer } = await service.ask("POST", "/v1/notifications", body);
    assert.equal(status, 202);
    return answer.notificationId as string;
  };
  const untilIs = (id: string, wanted: string) =>
    until(async () => {
      const found = await ask(service, `/v1/notifications/${id}`);
      return found.status === wanted ? found : undefined;
    });
  const ofRedis = async () =>
    (await ask(service, "/health")).checks.find(({ name }: { name: string }) => name === "redis");

  for (let n = 0; n < 2; n++) await untilIs(await send(email(n)), "sent");
  const third = await untilIs(await send(email(2)), "pending");
  assert.deepEqual(third.attempts, []);
  const ofDev = async () =>
    (await ask(service, "/v1/providers")).data.find(({ name }: { name: string }) => name === "dev").limits.account[0];
  const { room, waitMs } = await ofDev();
  assert.equal(room, 0);
  assert.ok(waitMs > 60_000);
  const { rows } = await service.db.query("select from carillon.limits");
  assert.equal(rows.length, 0, "PostgreSQL keeps none");
  assert.match((await ofRedis()).detail, /^Redis \d/);

  await redis.kill();
  const fourth = await send(email(3));
  await untilIs(await send({ channel: "console", content: { body: "no limit" } }), "sent");
  await until(async () => ((await ofRedis()).degraded ? true : undefined));
  assert.deepEqual((await ask(service, `/v1/notifications/${fourth}`)).attempts, []);
  assert.deepEqual(await ofDev(), { per: "hour", most: 4, burst: 2 }, "what is used is not known");
  await redis.restart();
  await until(async () => ((await ofRedis()).degraded ? undefined : true));
  const late = await untilIs(fourth, "pending");
  assert.deepEqual(late.attempts, []);
});
