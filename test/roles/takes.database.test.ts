// What a worker was told to take, and what shows where nobody takes something.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import type { Config } from "#config/read.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const sentBy = new Map<string, string>();
/** A provider of the same name for each, so that it shows who sent. */
const sharedBy = (name: string): Pick<Config, "providers" | "routes"> => {
  const noted = {
    type: "test" as const,
    onSend: ({ notificationId }: Message) => void sentBy.set(notificationId, name),
  };
  return { providers: { noted }, routes: Object.fromEntries(CHANNELS.map((channel) => [channel, "noted"])) as Routes };
};
type Routes = Config["routes"];
const CHANNELS = ["email", "push", "sms", "slack", "webhook", "inbox", "console", "file"];

let service: Service;
const workers: Service[] = [];
async function startTaking(name: string, takes: Config["takes"]): Promise<Service> {
  const roles: Config["roles"] = ["worker", "scheduler"];
  const worker = await startService({ ...sharedBy(name), roles, takes, databaseUrl: service.databaseUrl });
  workers.push(worker);
  return worker;
}
before(async () => {
  service = await startService({ ...sharedBy("api"), roles: ["api"] });
});
after(async () => {
  for (const worker of workers) await worker.stop();
  await service.stop();
});

const content = { subject: "s", textBody: "t", body: "b" };
const recipient = { email: "a@b.co", phone: "+33612345678", slackChannel: "c" };
async function send(request: object, key = service.key): Promise<string> {
  const { status, body } = await service.ask("POST", "/v1/notifications", { content, recipient, ...request }, { key });
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
}
const senderOf = (id: string) => until(async () => sentBy.get(id));
const untaken = async (key = service.key) => (await service.ask("GET", "/v1/queue", undefined, { key })).body.untaken;
const health = async () => {
  const { status, body } = await service.ask("GET", "/health", undefined, { key: null });
  const { detail } = body.checks.find(({ name }: { name: string }) => name === "workers");
  return { status, said: body.status, detail };
};
const figure = async (line: RegExp) => {
  const { body } = await service.ask("GET", "/metrics");
  return Number(line.exec(body)?.[1]);
};

test("that there is no worker at all shows, and a load balancer goes on", async () => {
  assert.deepEqual(await health(), { status: 200, said: "degraded", detail: "no worker is alive" });
  assert.equal((await service.ask("GET", "/ready", undefined, { key: null })).status, 200);
  assert.equal(await figure(/^notification_active_workers (\d+)$/m), 0);
});

test("a worker takes what it was told to, and says so", async () => {
  await startTaking("mailer", { channels: ["email", "slack"], lanes: ["high", "normal"] });
  await startTaking("texter", { channels: ["sms"] });
  const mail = await send({ channel: "email" });
  const text = await send({ channel: "sms" });
  assert.deepEqual([await senderOf(mail), await senderOf(text)], ["mailer", "texter"]);
  const { body } = await service.ask("GET", "/v1/workers");
  const alive = body.data.filter(({ alive }: { alive: boolean }) => alive);
  assert.deepEqual(
    alive.map(({ takes }: { takes: object }) => takes),
    [{ channels: ["sms"] }, { channels: ["email", "slack"], lanes: ["high", "normal"] }],
  );
});

test("what nobody takes waits and shows: by lane and channel in the queue, as degraded in health, as a figure to alert on", async () => {
  const acme = await service.makeKey({ tenant: "acme", scopes: ["send", "read", "admin"] });
  const other = await service.makeKey({ tenant: "other", scopes: ["send", "read", "admin"] });
  const soon = new Date(Date.now() + 300).toISOString();
  const waiting = [
    await send({ channel: "email", priority: "urgent" }, acme),
    await send({ channel: "console", scheduledFor: soon }),
    await send({ channel: "console", scheduledFor: "2099-01-01T00:00:00.000Z" }),
  ];
  const found = await until(async () => {
    const some = await untaken();
    return some.length === 2 ? some : undefined;
  });
  const flows = found.map(({ oldestAgeMs, ...flow }: { oldestAgeMs: number }) => {
    assert.ok(oldestAgeMs >= 0);
    return flow;
  });
  assert.deepEqual(flows, [
    { priority: "urgent", tenant: "acme", channel: "email", count: 1 },
    { priority: "normal", tenant: "default", channel: "console", count: 1 },
  ]);
  const seen = (await untaken(acme)).map(({ tenant }: { tenant: string }) => tenant);
  assert.deepEqual(seen, ["acme"], "a tenant sees its own");
  assert.deepEqual(await untaken(other), []);
  const degraded = await until(async () => {
    const now = await health();
    return now.detail.includes("none takes") ? now : undefined;
  }, 60_000);
  assert.deepEqual([degraded.status, degraded.said], [200, "degraded"]);
  assert.doesNotMatch(degraded.detail, /acme|email/, "anybody may ask");
  assert.equal(await figure(/^notification_untaken\{priority="urgent",region="none"\} (\d+)$/m), 1);
  assert.equal(await figure(/^notification_untaken\{priority="low",region="none"\} (\d+)$/m), 0);
  assert.ok((await figure(/^notification_untaken_oldest_seconds (.+)$/m)) > 0);

  // Whoever comes and takes it, gets it.
  await startTaking("rest", { channels: ["console", "email"] });
  const [urgent = "", due = ""] = waiting;
  assert.deepEqual([await senderOf(urgent), await senderOf(due)], ["rest", "rest"]);
  assert.deepEqual(await untaken(), []);
  await until(async () => ((await health()).said === "healthy" ? true : undefined), 60_000);
});

test("a worker of a region takes what asks for it and what asks for none; a region that nobody serves shows, told apart", async () => {
  await startTaking("european", { regions: ["eu"], channels: ["inbox"] });
  const inbox = { channel: "inbox", recipient: { userId: "u" } };
  const [theirs, anybodys] = [await send({ ...inbox, region: "eu" }), await send(inbox)];
  assert.deepEqual([await senderOf(theirs), await senderOf(anybodys)], ["european", "european"]);
  const key = await service.makeKey({ tenant: "misspelling", scopes: ["send"] });
  const lost = await send({ ...inbox, region: "ue" }, key);
  const [flow] = await until(async () => {
    const some = await untaken();
    return some.length > 0 ? some : undefined;
  });
  assert.deepEqual([flow.tenant, flow.channel, flow.region, flow.count], ["misspelling", "inbox", "ue", 1]);
  assert.equal(sentBy.get(lost), undefined);
  await until(async () => ((await health()).said === "degraded" ? true : undefined), 60_000);
  assert.equal((await health()).status, 200);
  assert.equal(await figure(/^notification_untaken\{priority="normal",region="named"\} (\d+)$/m), 1);
  assert.equal(await figure(/^notification_untaken\{priority="normal",region="none"\} (\d+)$/m), 0);
  assert.equal((await service.ask("POST", `/v1/notifications/${lost}/cancel`, undefined, { key })).status, 200);
});

test("a tenant that is made later is taken from then on", async () => {
  await startTaking("one tenant's", { tenants: ["later"], channels: ["file"] });
  const key = await service.makeKey({ tenant: "later", scopes: ["send"] });
  const [theirs, ours] = [await send({ channel: "file" }, key), await send({ channel: "file" })];
  assert.equal(await senderOf(theirs), "one tenant's");
  assert.equal(sentBy.get(ours), undefined);
  assert.deepEqual(
    (await untaken()).map(({ tenant, channel }: { tenant: string; channel: string }) => [tenant, channel]),
    [["default", "file"]],
  );
});
