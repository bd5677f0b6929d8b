// What is explained is what then happens: each notification is explained first, then sent, and its record compared.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import type { StandIn } from "../support/scripted.ts";
import { ask, email, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

let mails: StandIn;
let service: Service;

before(async () => {
  mails = await startStandIn();
  let sent = 0;
  mails.answer(() => ({ status: 202, headers: { "x-message-id": `sg-${++sent}` } }));
  const sendgrid = { type: "sendgrid", apiKey: "SG.x", from: "bell@example.com", apiUrl: mails.url } as const;
  const providers: Config["providers"] = {
    first: sendgrid,
    second: sendgrid,
    phones: { type: "test" },
    texts: { type: "test" },
    inbox: { type: "inbox" },
    dev: { type: "dev" },
  };
  const routes: Config["routes"] = {
    email: ["first", "second"],
    sms: "texts",
    push: "phones",
    inbox: "inbox",
    slack: "dev",
    webhook: "dev",
    console: "dev",
    file: "dev",
  };
  const limits: Config["limits"] = {
    providers: { texts: { recipient: [{ per: "hour", most: 1, burst: 1 }] } },
    tenant: [],
    recipient: [],
  };
  service = await startService({ roles: ["api", "worker"], providers, routes, limits });
});
after(async () => {
  await service.stop();
  await mails.close();
});

type Told = Awaited<ReturnType<Service["ask"]>>["body"];

async function explained(request: object): Promise<Told> {
  const { status, body } = await service.ask("POST", "/v1/explain", request);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Explains it, sends it, and compares; answers with both. */
async function agreed(request: object): Promise<{ told: Told; record: Told }> {
  const told = await explained(request);
  const { body } = await service.ask("POST", "/v1/notifications", request);
  const record = await until(async () => {
    const found = await ask(service, `/v1/notifications/${body.notificationId}`);
    return found.status === "queued" || found.status === "processing" ? undefined : found;
  });
  const line = record.events.at(-1);
  assert.equal(record.status, told.status);
  const isPostponed = line.type === "postponed";
  assert.equal(told.outcome.kind, isPostponed ? "postponed" : line.outcome);
  assert.equal(told.outcome.reason, line.error);
  assert.equal(told.provider, line.provider);
  assert.deepEqual(told.passedOver, line.detail?.passedOver);
  assert.equal(told.wouldSend, told.status === "sent" || told.status === "pending");
  return { told, record };
}

/** What went out says whose it is; what is explained is nobody's. */
const without = (text: string | undefined, id: string) => text?.replaceAll(id, "00000000-0000-0000-0000-000000000000");

test("a mail goes to the first provider, byte by byte as explained", async () => {
  const { told, record } = await agreed(email("explained"));
  assert.deepEqual([told.status, told.provider], ["sent", "first"]);
  const [wire] = told.wire;
  assert.deepEqual([told.wire.length, wire.provider, wire.type], [1, "first", "application/json"]);
  assert.equal(wire.body, without(mails.received.at(-1)?.body, record.notificationId));
  assert.equal(wire.bytes, Buffer.byteLength(wire.body));
});

test("it tells for how long it would be tried, and how often sent again though it may have been sent", async () => {
  const explained = async (more: object) => (await service.ask("POST", "/v1/explain", { ...email(), ...more })).body;
  const usual = await explained({});
  assert.ok(usual.retriedFor.leastMs >= 86_400_000 && usual.retriedFor.leastMs < usual.retriedFor.mostMs);
  assert.deepEqual([usual.onAmbiguous, usual.resends], ["resend", 2]);
  const own = await explained({ retryPolicy: { maxAttempts: 3 }, onAmbiguous: "hold" });
  assert.deepEqual(own.retryPolicy, {
    maxAttempts: 3,
    backoffMultiplier: 2,
    firstBackoffMs: 1_000,
    maxBackoffMs: 300_000,
  });
  assert.deepEqual([own.retriedFor, own.resends], [{ leastMs: 1_500, mostMs: 3_000 }, 0]);
});

test("a filled template is what goes out", async () => {
  const template = {
    channel: "email",
    name: "Hi",
    content: { subject: "Hi {{ name }}", textBody: "Hello {{ name }}" },
  };
  assert.equal((await service.ask("PUT", "/v1/templates/hi", template)).status, 200);
  const content = { templateId: "hi", variables: { name: "Ada" } };
  const { told, record } = await agreed({ ...email(), content });
  assert.equal(told.content.subject, "Hi Ada");
  assert.equal(told.wire[0].body, without(mails.received.at(-1)?.body, record.notificationId));
});

test("a template that does not render fails for the same reason", async () => {
  const { told } = await agreed({ ...email(), content: { templateId: "nobody" } });
  assert.deepEqual([told.status, told.wire], ["failed", []]);
  assert.equal(told.templateError, told.outcome.reason);
});

test("to a suppressed address nothing goes, and no copy either", async () => {
  assert.equal((await service.ask("PUT", "/v1/suppressions/off@example.com", {})).status, 200);
  // The worker looks every few seconds whether anybody is suppressed at all.
  await until(async () => {
    const { body } = await service.ask("POST", "/v1/notifications", {
      ...email(),
      recipient: { email: "off@example.com" },
    });
    const { status } = await until(async () => {
      const found = await ask(service, `/v1/notifications/${body.notificationId}`);
      return found.attempts.length > 0 ? found : undefined;
    });
    return status === "suppressed" ? true : undefined;
  });
  const { told } = await agreed({ ...email(), recipient: { email: "OFF@example.com" } });
  assert.deepEqual([told.status, told.suppressed, told.wire], ["suppressed", "manual", []]);

  const copies = { ...email(), content: { ...email().content, cc: ["off@example.com", "on@example.com"] } };
  const { told: copied, record } = await agreed(copies);
  assert.deepEqual(copied.content.cc, ["on@example.com"]);
  assert.equal(copied.wire[0].body, without(mails.received.at(-1)?.body, record.notificationId));
});

test("a push goes to the devices that are found, registered or not; without any it fails", async () => {
  const push = (recipient: object) => ({ channel: "push", recipient, content: { title: "Hi" } });
  const { told: none } = await agreed(push({ userId: "nobody" }));
  assert.deepEqual([none.status, none.devices], ["failed", []]);

  assert.equal((await service.ask("PUT", "/v1/users/ada/devices/phone", { platform: "ios" })).status, 200);
  const { told, record } = await agreed(push({ deviceTokens: ["phone", "unknown"] }));
  assert.deepEqual(told.devices, [
    { token: "phone", platform: "ios" },
    { token: "unknown", platform: "android" },
  ]);
  const reached = record.events.at(-1).detail.devices.map(({ token }: { token: string }) => token);
  assert.deepEqual(reached, ["phone", "unknown"]);
});

test("what the provider refuses by itself is refused", async () => {
  const content = { title: "Hi", clickAction: "javascript:alert(1)" };
  const { told } = await agreed({ channel: "inbox", recipient: { userId: "ada" }, content });
  assert.deepEqual([told.status, told.route[0].accepts], ["failed", false]);
});

test("where a limit is used up, it waits", async () => {
  const sms = { channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "1234" } };
  assert.equal((await agreed(sms)).told.status, "sent");
  const { told } = await agreed(sms);
  assert.deepEqual([told.status, told.outcome.kind], ["pending", "postponed"]);
  const again = await explained(sms);
  assert.ok(again.outcome.waitMs > 0, "to explain takes nothing, and waits for nothing");
});

test("a provider whose breaker is open is passed over for the next", async () => {
  await service.db.query(
    `insert into carillon.breakers (account, state, until, openings, worker)
     values ('first', 'open', clock_timestamp() + interval '1 minute', 5, 0)`,
  );
  await until(async () => {
    const { body } = await service.ask("GET", "/metrics");
    return /breaker\w*\{[^}]*"first"[^}]*\} 2/.test(body) || undefined;
  });
  const { told } = await agreed(email("elsewhere"));
  assert.deepEqual([told.provider, told.passedOver[0].provider, told.route[0].breaker], ["second", "first", "open"]);
});

test("what is refused at the door is refused alike", async () => {
  const request = { ...email(), scheduledFor: "2127-01-02T00:00:00Z", expiresAt: "2127-01-01T00:00:00Z" };
  const [told, sent] = [
    await service.ask("POST", "/v1/explain", request),
    await service.ask("POST", "/v1/notifications", request),
  ];
  assert.deepEqual([told.status, told.body.errors], [sent.status, sent.body.errors]);
  assert.equal(sent.status, 422);
});

test("what is explained is neither stored nor sent", async () => {
  const [{ accepted }, count] = [await ask(service, "/v1/ledger"), mails.received.length];
  await explained(email("only explained"));
  assert.deepEqual([(await ask(service, "/v1/ledger")).accepted, mails.received.length], [accepted, count]);
});
