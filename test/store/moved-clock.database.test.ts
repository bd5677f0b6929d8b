// The clock is moved: carillon.now() shows tomorrow, and what goes by it is a day further. Leases, locks and limits are not.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { resolveLimits } from "#config/limits.ts";
import { ROLES } from "#config/server.ts";
import { takeLock } from "#store/locks.ts";
import type { StandIn } from "../support/scripted.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const inbox = (title: string) => ({ channel: "inbox", recipient: { userId: "ada" }, content: { title } });
const isTomorrow = (written: string) => Math.abs(Date.parse(written) - Date.now() - DAY) < HOUR;

async function begin(t: TestContext) {
  const receiver = await startStandIn();
  const { limits } = resolveLimits({ providers: { console: { account: [{ per: "day", most: 1 }] } } }, {});
  const service = await startService({
    roles: ROLES,
    sweepMs: 100,
    allowAddresses: ["127.0.0.1"],
    locks: { kind: "postgres", channels: ["webhook"] },
    limits,
  });
  t.after(async () => {
    await service.stop();
    await receiver.close();
  });
  const send = async (request: object): Promise<string> => {
    const { status, body } = await service.ask("POST", "/v1/notifications", request);
    assert.equal(status, 202, JSON.stringify(body));
    return body.notificationId;
  };
  const ends = (id: string, status: string) =>
    until(async () => {
      const found = await ask(service, `/v1/notifications/${id}`);
      return found.status === status ? found : undefined;
    }, 40_000);
  return { service, receiver, send, ends };
}
const hook = ({ url }: StandIn, body: string) => ({
  channel: "webhook",
  recipient: { webhookUrl: url },
  content: { body },
});
/** Whoever moves it tells those who sleep until an instant. */
const moveByADay = ({ db }: Service) =>
  db.query(`create or replace function carillon.now() returns timestamptz
    language sql stable parallel safe as $$ select statement_timestamp() + interval '1 day' $$;
    notify carillon_due, '0'`);

test("a day further, what was to be sent tomorrow is sent, what was to expire is over, and the record tells tomorrow's times", async (t) => {
  const { service, receiver, send, ends } = await begin(t);
  receiver.answer({ status: 503, headers: { "retry-after": "3600" } });
  const retried = await send(hook(receiver, "in an hour"));
  await ends(retried, "pending");
  const tomorrow = await send({ ...inbox("tomorrow"), scheduledFor: inMs(DAY - HOUR) });
  const later = await send({ ...inbox("later"), scheduledFor: inMs(DAY + HOUR) });
  const brief = await send({ ...inbox("brief"), scheduledFor: inMs(2 * HOUR), expiresAt: inMs(3 * HOUR) });
  const keyed = await send({ ...inbox("keyed"), idempotencyKey: "for a day" });
  await ends(keyed, "sent");
  await service.ask("PUT", "/v1/schedules/daily", { every: "PT20H", notification: inbox("daily") });
  const game = { at: inMs(DAY + HOUR), before: ["PT2H"], notification: inbox("game") };
  await service.ask("PUT", "/v1/reminders/game", game);

  receiver.answer({ status: 204 });
  await moveByADay(service);
  const { events, attempts } = await ends(tomorrow, "sent");
  assert.ok(isTomorrow(events.at(-1).at) && isTomorrow(attempts[0].startedAt), JSON.stringify({ events, attempts }));
  assert.equal((await ends(retried, "sent")).attempts.length, 2);
  await ends(brief, "expired");
  await until(async () => ((await ask(service, "/v1/schedules/daily/runs")).data.length > 0 ? true : undefined));
  await until(async () => ((await ask(service, "/v1/reminders/game")).plan[0].status === "sent" ? true : undefined));
  assert.equal((await ask(service, `/v1/notifications/${later}`)).status, "pending");

  // An idempotency key's day is over: the same one makes another notification.
  const again = await send({ ...inbox("keyed"), idempotencyKey: "for a day" });
  assert.notEqual(again, keyed);
  assert.ok(isTomorrow((await ends(again, "sent")).enqueuedAt));
  const { data } = await ask(service, "/v1/inbox/ada");
  assert.ok(isTomorrow(data[0].createdAt), JSON.stringify(data[0]));
});

test("a day further, a worker's lease is not over, a lock is held and a limit has not refilled", async (t) => {
  const { service, receiver, send, ends } = await begin(t);
  receiver.answer({ status: 204, delayMs: 5_000 });
  const slow = await send(hook(receiver, "slow"));
  await receiver.arrived(1);
  const say = (body: string) => ({ channel: "console", content: { body } });
  await ends(await send(say("the one of the day")), "sent");
  const second = await send(say("one too many"));
  const waitsHours = async () => {
    const { rows } = await service.db.query(
      "select extract(epoch from due_at - carillon.now())::float8 / 3600 as hours from carillon.later where id = $1",
      [second],
    );
    return rows[0]?.hours ?? 0;
  };
  await until(async () => ((await waitsHours()) > 23 ? true : undefined));
  const brief = await send({ ...inbox("brief"), scheduledFor: inMs(2 * HOUR), expiresAt: inMs(3 * HOUR) });

  await moveByADay(service);
  // The keeper has looked since, and has taken nothing from anybody.
  await ends(brief, "expired");
  assert.equal((await ask(service, `/v1/notifications/${slow}`)).status, "processing");
  assert.ok("holder" in ((await takeLock(service.db, slow, "another", 1_000)) ?? {}), "held by whoever sends it");
  assert.equal((await ends(slow, "sent")).attempts.length, 1);
  assert.equal(receiver.received.length, 1);
  // Its time has come, so it asks again, and has to wait for as long again.
  await until(async () => ((await waitsHours()) > 23 ? true : undefined), 40_000);
  assert.equal((await ask(service, `/v1/notifications/${second}`)).attempts.length, 0);
});
