// The channels end to end: routes and failover, push to all devices, delivery reports, suppressions, tenants' own accounts,
// templates, explain, costs, and what dev keeps. Providers' servers are stand-ins on loopback.

import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { CHANNEL_RETRY } from "#domain/retry-policy.ts";
import type { StandIn } from "../support/scripted.ts";
import { ask, email, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const sendgridKeys = generateKeyPairSync("ec", { namedCurve: "P-256" });
const webhookPublicKey = sendgridKeys.publicKey.export({ type: "spki", format: "der" }).toString("base64");
const AUTH_TOKEN = "twilio-auth-token";
const fates = new Map<string, "accepted" | "dead" | "away">();

let sendgrid: StandIn;
let twilio: StandIn;
let service: Service;
let messages = 0;

before(async () => {
  sendgrid = await startStandIn();
  twilio = await startStandIn();
  sendgrid.answer(() => ({ status: 202, headers: { "x-message-id": `sg-${++messages}` } }));
  twilio.answer(() => ({ status: 201, body: { sid: `SM${++messages}`, status: "queued" } }));
  const providers: Config["providers"] = {
    dev: { type: "dev" },
    away: { type: "test", mix: { unavailable: 1 } },
    limited: { type: "test", mix: { limited: 1 } },
    lost: { type: "test", mix: { acceptThenReset: 1 } },
    sendgrid: {
      type: "sendgrid",
      apiKey: "SG.deployment",
      from: "bell@example.com",
      apiUrl: sendgrid.url,
      webhookPublicKey,
    },
    twilio: { type: "twilio", accountSid: "AC1", authToken: AUTH_TOKEN, from: "+15005550006", apiUrl: twilio.url },
    phones: { type: "test", onSend: () => undefined },
  };
  const routes: Config["routes"] = {
    email: ["away", "limited", "sendgrid"],
    sms: "twilio",
    slack: ["lost", "dev"],
    push: "phones",
    webhook: "dev",
    inbox: "dev",
    console: "dev",
    file: "dev",
  };
  const secretKeys = [randomBytes(32)];
  const roles: Config["roles"] = ["api", "worker", "scheduler", "keeper"];
  const publicUrl = "https://carillon.example.com";
  service = await startService({ roles, providers, routes, secretKeys, publicUrl, sweepMs: 200 });
});
after(async () => {
  await service.stop();
  await sendgrid.close();
  await twilio.close();
});

const sms = (phone = "+33612345678") => ({
  channel: "sms",
  recipient: { phone },
  content: { body: "Your code is 1234" },
});
async function send(request: object, key?: string): Promise<string> {
  const { status, body } = await service.ask("POST", "/v1/notifications", request, key === undefined ? {} : { key });
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
}
const read = (id: string) => ask(service, `/v1/notifications/${id}`);
const becomes = (id: string, ...statuses: string[]) =>
  until(async () => {
    const record = await read(id);
    return statuses.includes(record.status) ? record : undefined;
  });
const receiptOf = (record: { events: { detail?: { receipt?: string } }[] }): string =>
  record.events.find(({ detail }) => detail?.receipt)?.detail?.receipt ?? "";

test("a provider that is away or refuses for now is passed over within the same attempt, and the record says so", async () => {
  const record = await becomes(await send(email("failover")), "sent");
  assert.equal(record.attempts.length, 1);
  assert.equal(record.attempts[0].provider, "sendgrid");
  const { detail } = record.events.find(({ type }: { type: string }) => type === "attempt");
  assert.deepEqual(
    detail.passedOver.map(({ provider, outcome }: { provider: string; outcome: string }) => [provider, outcome]),
    [
      ["away", "unavailable"],
      ["limited", "limited"],
    ],
  );
  assert.equal(sendgrid.received.at(-1)?.headers.authorization, "Bearer SG.deployment");
});

test("where an answer was lost, no other provider gets the message", async () => {
  const slack = { channel: "slack", recipient: { slackChannel: "C1" }, content: { body: "lost" }, onAmbiguous: "hold" };
  const id = await send(slack);
  const record = await becomes(id, "ambiguous");
  assert.equal(record.attempts[0].provider, "lost");
  const { data } = await ask(service, `/v1/dev/messages?notificationId=${id}`);
  assert.deepEqual(data, []);
});

function sendgridReport(events: object[], more: { key?: typeof sendgridKeys.privateKey } = {}) {
  const raw = JSON.stringify(events);
  const at = String(Math.floor(Date.now() / 1000));
  const signature = sign("sha256", Buffer.from(at + raw), more.key ?? sendgridKeys.privateKey).toString("base64");
  const headers = {
    "x-twilio-email-event-webhook-timestamp": at,
    "x-twilio-email-event-webhook-signature": signature,
  };
  return service.ask("POST", "/v1/providers/sendgrid/events", undefined, { key: null, raw, headers });
}
const happened = (event: string, receipt: string, address: string, more: object = {}) => ({
  event,
  sg_message_id: `${receipt}.filter0001.1.2`,
  sg_event_id: `${event}-${receipt}`,
  email: address,
  timestamp: Math.floor(Date.now() / 1000),
  ...more,
});

test("a delivery report moves sent to delivered, once, and only if its signature holds", async () => {
  const id = await send(email("delivered"));
  const receipt = receiptOf(await becomes(id, "sent"));
  const report = [happened("delivered", receipt, "ada@example.com")];
  const forged = await sendgridReport(report, { key: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey });
  assert.deepEqual([forged.status, forged.body.code], [401, "BAD_SIGNATURE"]);
  assert.equal((await read(id)).status, "sent");
  for (let n = 0; n < 2; n++) assert.deepEqual((await sendgridReport(report)).body, { received: 1 });
  const record = await becomes(id, "delivered");
  assert.equal(record.events.filter(({ type }: { type: string }) => type === "delivered").length, 1);
  assert.equal(
    (await service.ask("POST", "/v1/providers/nobody/events", undefined, { key: null, raw: "[]" })).status,
    404,
  );
});

test("a bounce is a failure whichever report comes first, and nothing more goes to that address", async () => {
  for (const [n, order] of [
    ["delivered", "bounce"],
    ["bounce", "delivered"],
  ].entries()) {
    const address = `bounced-${n}@example.com`;
    const request = { ...email(), recipient: { email: address } };
    const id = await send(request);
    const receipt = receiptOf(await becomes(id, "sent"));
    for (const event of order) {
      await sendgridReport([happened(event, receipt, address, { type: "bounce", reason: "550 5.1.1 no such user" })]);
    }
    const record = await becomes(id, "failed");
    assert.match(record.events.at(-1).error, /no such user/);
    const { data } = await ask(service, "/v1/suppressions");
    assert.ok(data.some((one: { address: string; why: string }) => one.address === address && one.why === "bounce"));
    const later = await until(async () => {
      const again = await becomes(await send(request), "sent", "suppressed");
      return again.status === "suppressed" ? again : undefined;
    });
    assert.equal(later.attempts[0].outcome, "suppressed");
    assert.equal((await service.ask("DELETE", `/v1/suppressions/${address}`)).status, 204);
    await until(async () =>
      (await becomes(await send(request), "sent", "suppressed")).status === "sent" ? true : undefined,
    );
  }
});

test("copies go along, but for those to whom nothing more is sent", async () => {
  const gone = "gone@example.com";
  assert.equal((await service.ask("PUT", `/v1/suppressions/${gone}`, {})).status, 200);
  const { content, ...rest } = email("copied");
  const id = await send({ ...rest, content: { ...content, cc: ["bob@example.com", gone], bcc: [gone] } });
  assert.equal((await becomes(id, "sent")).status, "sent");
  const { personalizations } = JSON.parse(sendgrid.received.at(-1)?.body ?? "{}");
  assert.deepEqual(personalizations, [{ to: [{ email: rest.recipient.email }], cc: [{ email: "bob@example.com" }] }]);
});

test("what becomes of a copy says nothing about the notification, and a copy that bounces is suppressed", async () => {
  const { content, ...rest } = email("watched");
  const id = await send({ ...rest, content: { ...content, cc: ["copy@example.com"], bcc: ["hidden@example.com"] } });
  const receipt = receiptOf(await becomes(id, "sent"));
  const bounce = { type: "bounce", reason: "550 5.1.1 no such user" };
  await sendgridReport([
    happened("bounce", receipt, "copy@example.com", bounce),
    happened("delivered", receipt, "Hidden@example.com"),
  ]);
  // Whoever comes first applies a report: the request that brought it, or the keeper, which that does not wait for.
  await until(async () => {
    const { data } = await ask(service, "/v1/suppressions");
    return data.some(({ address }: { address: string }) => address === "copy@example.com") ? true : undefined;
  });
  assert.equal((await read(id)).status, "sent");
  await sendgridReport([{ ...happened("delivered", receipt, rest.recipient.email), sg_event_id: `own-${receipt}` }]);
  assert.equal((await becomes(id, "delivered", "failed")).status, "delivered");
});

test("what a schedule holds of callbacks since before there were any does not keep it from firing", async () => {
  const schedule = { every: "PT1S", notification: email("ticking") };
  assert.equal((await service.ask("PUT", "/v1/schedules/held", schedule)).status, 200);
  await service.db.query("update carillon.schedules set notice = (notice::jsonb || $1)::json where key = 'held'", [
    JSON.stringify({ callbackUrl: "https://example.com/cb", callbackPolicy: "best_effort" }),
  ]);
  await until(async () => {
    const { data } = await ask(service, "/v1/schedules/held/runs");
    return data.find(({ outcome }: { outcome: string }) => outcome === "sent");
  });
  assert.equal((await service.ask("DELETE", "/v1/schedules/held")).status, 204);
});

test("a report that outran our own commit is an orphan until its receipt is known", async () => {
  const receipt = `early-${Date.now()}`;
  await sendgridReport([happened("delivered", receipt, "ada@example.com")]);
  const id = await send(email("orphan"));
  const record = await becomes(id, "sent");
  await service.db.query(
    "insert into carillon.receipts (provider, receipt, tenant, notification_id) values ('sendgrid', $1, 1, $2)",
    [receipt, record.notificationId],
  );
  await becomes(id, "delivered");
});

test("Twilio's reports are verified over the public URL, and a costly message is counted", async () => {
  const id = await send({ ...sms(), metadata: { team: "login" } });
  const record = await becomes(id, "sent");
  assert.ok(record.attempts[0].cost > 0);
  const params = { MessageSid: receiptOf(record), MessageStatus: "delivered", To: "+33612345678" };
  const url = "https://carillon.example.com/v1/providers/twilio/events";
  const text = Object.keys(params)
    .sort()
    .reduce((sum, name) => sum + name + params[name as keyof typeof params], url);
  const signature = createHmac("sha1", AUTH_TOKEN).update(text).digest("base64");
  const options = (headers: object) => ({
    key: null,
    raw: new URLSearchParams(params).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
  });
  const path = "/v1/providers/twilio/events";
  assert.equal((await service.ask("POST", path, undefined, options({}))).status, 401);
  assert.equal((await service.ask("POST", path, undefined, options({ "x-twilio-signature": signature }))).status, 200);
  await becomes(id, "delivered");
  const costs = await ask(service, "/v1/costs?by=metadata.team");
  assert.deepEqual(
    costs.data.filter(({ key }: { key: string }) => key === "login"),
    [{ key: "login", sent: 1, cost: 0.0083 }],
  );
  assert.deepEqual([costs.looked > 0, costs.nextCursor], [true, null]);
  const byProvider = await ask(service, "/v1/costs");
  const twilio = byProvider.data.find(({ key }: { key: string }) => key === "twilio");
  assert.ok(twilio.sent >= 1 && twilio.cost >= 0.0083 && byProvider.total >= twilio.cost, JSON.stringify(byProvider));
  assert.equal(Date.parse(byProvider.since) % 3_600_000, 0, "a month ago it is known to the hour");
  const misplaced = await service.ask("GET", "/v1/costs?cursor=AAAAAAAAAAAAAAAAAAAAAA");
  assert.deepEqual([misplaced.status, misplaced.body.errors?.[0]?.path], [422, "/cursor"]);
  const { data } = await ask(service, "/v1/providers");
  const found = data.find(({ name }: { name: string }) => name === "twilio");
  assert.ok(found.spend.sent >= 1 && found.spend.cost > 0);
  assert.deepEqual([found.type, found.routes, found.own], ["twilio", ["sms"], false]);
});

test("a tenant's own account is sealed, used for its sends only, and never shown", async () => {
  const theirs = await service.makeKey({ tenant: "acme", scopes: ["admin"] });
  const options = { key: theirs };
  const secret = "acme-secret-token";
  const account = { type: "twilio", accountSid: "AC-acme", authToken: secret, from: "+15005550009" };
  assert.equal((await service.ask("PUT", "/v1/providers/twilio", account, options)).status, 204);
  const { rows } = await service.db.query("select sealed from carillon.credentials");
  assert.ok(!rows[0].sealed.includes(secret));
  const shown = await service.ask("GET", "/v1/providers", undefined, options);
  assert.ok(!JSON.stringify(shown.body).includes(secret));
  assert.equal(shown.body.data.find(({ name }: { name: string }) => name === "twilio").own, true);

  for (const [field, value] of [
    ["apiUrl", "http://169.254.169.254"],
    ["from", 5],
    ["nonsense", "x"],
  ] as const) {
    const wrong = await service.ask("PUT", "/v1/providers/twilio", { ...account, [field]: value }, options);
    assert.equal(wrong.status, 422, field);
  }
  for (const type of ["file", "test", "console"]) {
    assert.equal((await service.ask("PUT", "/v1/providers/twilio", { type }, options)).status, 422, type);
  }
  assert.equal((await service.ask("PUT", "/v1/providers/nobody", account, options)).status, 404);

  const id = await send(sms(), theirs);
  await until(async () => {
    const { body } = await service.ask("GET", `/v1/notifications/${id}`, undefined, options);
    return body.status === "queued" || body.status === "processing" ? undefined : body;
  });
  assert.ok(!twilio.received.some(({ path }) => path.includes("AC-acme")), "their account speaks to Twilio itself");
  await becomes(await send(sms()), "sent");
  assert.ok(twilio.received.at(-1)?.path.includes("/AC1/"));
  assert.equal((await service.ask("DELETE", "/v1/providers/twilio", undefined, options)).status, 204);
  await until(async () => {
    const theirNext = await send(sms(), theirs);
    const { body } = await service.ask("GET", `/v1/notifications/${theirNext}`, undefined, options);
    return (await service.ask("GET", `/v1/notifications/${theirNext}`, undefined, options)).body.status === "sent" &&
      body
      ? true
      : undefined;
  });
});

test("push goes to all active devices; each stands or falls by itself, and only the failed ones are tried again", async () => {
  const calls: string[] = [];
  const providers: Config["providers"] = {
    phones: {
      type: "test",
      onSend: ({ device }) => void calls.push(device?.token ?? ""),
      decide: ({ device }) => fates.get(device?.token ?? "") ?? "accepted",
    },
  };
  const other = await startService({
    roles: ["api", "worker", "scheduler"],
    providers,
    routes: { push: "phones" } as Config["routes"],
  });
  try {
    const put = (token: string, body: object) => other.ask("PUT", `/v1/users/ada/devices/${token}`, body);
    for (const token of ["good", "gone", "shy"]) assert.equal((await put(token, { platform: "ios" })).status, 200);
    assert.equal((await put("browser", { platform: "web" })).status, 422);
    fates.set("gone", "dead").set("shy", "away");
    const { body } = await other.ask("POST", "/v1/notifications", {
      channel: "push",
      recipient: { userId: "ada" },
      content: { title: "Hello" },
      retryPolicy: { maxAttempts: 3, maxBackoffMs: 200 },
    });
    await until(async () => (calls.length >= 4 ? true : undefined));
    fates.set("shy", "accepted");
    const record = await until(async () => {
      const found = await ask(other, `/v1/notifications/${body.notificationId}`);
      return found.status === "sent" ? found : undefined;
    });
    assert.equal(calls.filter((token) => token === "good").length, 1, "what was accepted is not sent again");
    assert.equal(calls.filter((token) => token === "gone").length, 1);
    assert.ok(calls.filter((token) => token === "shy").length >= 2);
    const tried = record.events.filter(({ type }: { type: string }) => type === "attempt");
    assert.deepEqual(
      tried[0].detail.devices.map(({ token, outcome }: { token: string; outcome: string }) => [token, outcome]).sort(),
      [
        ["gone", "dead-recipient"],
        ["good", "accepted"],
        ["shy", "unavailable"],
      ],
    );
    const { data } = await ask(other, "/v1/users/ada/devices");
    assert.deepEqual(
      data.filter(({ active }: { active: boolean }) => !active).map(({ token }: { token: string }) => token),
      ["gone"],
    );
    assert.equal((await put("gone", { platform: "ios" })).body.active, true, "registering brings it back");
  } finally {
    await other.stop();
  }
});

test("a template is filled before it is sent; a broken one fails its notification with the line", async () => {
  const template = {
    channel: "email",
    name: "Welcome",
    content: { subject: "Hello {{ name }}", textBody: "Dear {{ name }},\n\nwelcome." },
  };
  assert.equal((await service.ask("PUT", "/v1/templates/welcome", template)).status < 300, true);
  const content = { templateId: "welcome", variables: { name: "Ada" } };
  const before = sendgrid.received.length;
  await becomes(await send({ ...email(), content }), "sent");
  const sent = JSON.parse(sendgrid.received[before]?.body ?? "{}");
  assert.equal(sent.subject ?? sent.personalizations?.[0]?.subject, "Hello Ada");

  const missing = await becomes(await send({ ...email(), content: { templateId: "nobody" } }), "failed");
  assert.match(missing.attempts[0].error, /nobody/);
});

test("explain tells every decision and shows the bytes, and neither stores nor sends", async () => {
  const { accepted } = await ask(service, "/v1/ledger");
  const before = sendgrid.received.length;
  const content = { templateId: "welcome", variables: { name: "Ada" } };
  const { status, body } = await service.ask("POST", "/v1/explain", { ...email(), content, priority: "high" });
  assert.equal(status, 200);
  assert.deepEqual([body.wouldSend, body.priority, body.suppressed], [true, "high", false]);
  assert.equal(body.content.subject, "Hello Ada");
  assert.deepEqual(
    body.route.map(({ provider }: { provider: string }) => provider),
    ["away", "limited", "sendgrid"],
  );
  assert.deepEqual([body.route[2].breaker, body.route[2].limits], ["closed", []]);
  assert.deepEqual(body.retryPolicy, CHANNEL_RETRY.email);
  const broken = await service.ask("POST", "/v1/explain", { ...email(), content: { templateId: "nobody" } });
  assert.equal(broken.body.wouldSend, false);
  assert.match(broken.body.templateError, /nobody/);
  assert.equal((await service.ask("POST", "/v1/explain", { channel: "email" })).status, 422);
  assert.equal((await ask(service, "/v1/ledger")).accepted, accepted);
  assert.equal(sendgrid.received.length, before);
});

test("dev keeps what would have gone out", async () => {
  const id = await send({ channel: "inbox", recipient: { userId: "u" }, content: { title: "Hi" } });
  await becomes(id, "sent");
  const { data } = await ask(service, `/v1/dev/messages?notificationId=${id}`);
  assert.deepEqual([data.length, data[0].message.content.title], [1, "Hi"]);
  assert.equal((await service.ask("DELETE", "/v1/dev/messages")).status, 204);
  assert.deepEqual((await ask(service, "/v1/dev/messages")).data, []);
});
