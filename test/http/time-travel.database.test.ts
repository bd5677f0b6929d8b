// Time travel: the clock is moved on for everybody, and what outsiders compare with their own clocks stays true.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { ROLES } from "#config/server.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const DAY = 86_400_000;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const isAbout = (instant: string, ms: number) => Math.abs(Date.parse(instant) - ms) < 3_600_000;
const mail = (to: string) => ({
  channel: "email" as const,
  recipient: { email: to },
  content: { subject: "Game", textBody: "!" },
});

let service: Service;
let sibling: Service;
let receiver: Awaited<ReturnType<typeof startStandIn>>;
before(async () => {
  receiver = await startStandIn();
  const known = { development: true, allowAddresses: ["127.0.0.1"] };
  service = await startService({ ...known, roles: ROLES });
  sibling = await startService({ ...known, databaseUrl: service.databaseUrl });
});
after(async () => {
  await sibling.stop();
  await service.stop();
  await receiver.close();
});
const client = () => createClient({ url: service.url, key: service.key });

test("where it is not development there is no clock to move", async (t) => {
  const production = await startService();
  t.after(production.stop);
  for (const [method, path] of [
    ["GET", "clock"],
    ["POST", "clock"],
    ["DELETE", "clock"],
  ] as const) {
    assert.equal(
      (await production.ask(method, `/v1/dev/${path}`, method === "POST" ? { by: "P1D" } : undefined)).status,
      404,
    );
  }
});

test("only whoever runs the deployment moves it, on and not back, and by something that is a time", async () => {
  const admin = await service.makeKey({ tenant: "acme", scopes: ["admin"] });
  const own = await service.makeKey({ scopes: ["read", "send"] });
  for (const key of [admin, own]) {
    assert.equal((await service.ask("POST", "/v1/dev/clock", { by: "P1D" }, { key })).status, 403);
    assert.equal((await service.ask("DELETE", "/v1/dev/clock", undefined, { key })).status, 403);
  }
  const bad = [
    {},
    { by: "1 day" },
    { by: "P1D", to: inMs(DAY) },
    { by: "P11Y" },
    { to: inMs(-DAY) },
    { to: "tomorrow" },
    { by: "-P1D" },
  ];
  for (const body of bad) {
    assert.equal((await service.ask("POST", "/v1/dev/clock", body)).status, 422, JSON.stringify(body));
  }
  assert.equal((await ask(service, "/v1/dev/clock")).movedMs, 0);
});

test("a reminder for next month is in the mailbox a moment later, for all processes, while signatures, sessions and keys in use stay as they were", async () => {
  const session = await sibling.ask("POST", "/v1/sessions", undefined);
  const cookie = session.headers.get("set-cookie")?.split(";")[0] ?? "";
  const signedIn = () => sibling.ask("GET", "/v1/sessions", undefined, { key: null, headers: { cookie } });
  assert.equal((await signedIn()).status, 200);
  const at = inMs(40 * DAY);
  const game = { at, before: ["P10D"], notification: mail("ada@example.com") };
  assert.equal((await service.ask("PUT", "/v1/reminders/game", game)).status, 201);
  const waiting = client().dev.messages.wait({ to: "ada@example.com", seconds: 60 });
  const { now, movedMs } = await client().dev.clock.move({ by: "P30DT1H" });
  assert.ok(isAbout(now, Date.now() + 30 * DAY + 3_600_000) && movedMs === 30 * DAY + 3_600_000, now);
  const [kept] = await waiting;
  assert.equal(kept?.message.content.subject, "Game");
  assert.ok(isAbout(kept?.at ?? "", Date.parse(now)), kept?.at);
  const { wire } = await client().dev.messages.get(kept?.id ?? "");
  assert.ok(isAbout(/^Date: (.*)$/m.exec(wire?.body ?? "")?.[1] ?? "", Date.parse(now)), "so is the date of the mail");
  // The other process knows: what expires in between is over.
  const brief = { ...mail("ada@example.com"), expiresAt: inMs(10 * DAY) };
  await until(
    async () => ((await sibling.ask("POST", "/v1/notifications", brief)).status === 422 ? true : undefined),
    5_000,
  );
  assert.equal((await signedIn()).status, 200, "who is signed in stays so");

  receiver.answer({ status: 204 });
  const hook = { channel: "webhook", recipient: { webhookUrl: receiver.url }, content: { body: "Hello" } };
  await service.ask("POST", "/v1/notifications", hook);
  await receiver.arrived(1);
  const stamp = Number(receiver.received[0]?.headers["webhook-timestamp"]) * 1000;
  assert.ok(Math.abs(stamp - Date.now()) < 3_600_000, "a receiver believes what was signed just now");
  const clock = (await ask(service, "/health")).checks.find(({ name }: { name: string }) => name === "clock");
  assert.deepEqual([clock.healthy, clock.detail], [true, `as the database's; it was moved by ${movedMs / 1000} s`]);
});

test("it stays moved when everything starts again, and is told where nobody may move it; set back, what comes is of today", async (t) => {
  const production = await startService({ databaseUrl: service.databaseUrl });
  t.after(production.stop);
  const { checks } = await ask(production, "/health");
  const clock = checks.find(({ name }: { name: string }) => name === "clock");
  assert.match(clock.detail, /it was moved by 2595600 s/);

  // Further than weeks are made for: ids go by it, and have a week to go into.
  await client().dev.clock.move({ by: "P3M" });
  const far = await client().send(mail("far@example.com"));
  const week = "select tableoid::regclass::text as week from carillon.notifications where id = $1";
  assert.match((await service.db.query(week, [far.notificationId])).rows[0].week, /notifications_\d{8}$/);

  const { movedMs } = await client().dev.clock.reset();
  assert.equal(movedMs, 0);
  const { notificationId } = await client().send(mail("grace@example.com"));
  const madeAt = Number.parseInt(notificationId.replaceAll("-", "").slice(0, 12), 16);
  assert.ok(Math.abs(madeAt - Date.now()) < 3_600_000, "its id, too");
  const [kept] = await client().dev.messages.wait({ to: "grace@example.com", seconds: 60 });
  assert.ok(isAbout(kept?.at ?? "", Date.now()), kept?.at);
  const { rows } = await service.db.query("select action from carillon.audit where action like 'clock.%' order by seq");
  assert.deepEqual(
    rows.map(({ action }) => action),
    ["clock.move", "clock.move", "clock.reset"],
  );
});
